-- What all servers on one store sign with.

-- name: secrets.get
INSERT INTO rota_secrets (name, value) VALUES (:name, :value)
ON CONFLICT (name) DO UPDATE SET name = excluded.name
RETURNING value
