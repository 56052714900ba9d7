-- name: shelf.add
INSERT INTO shelf_books (title) VALUES (:title) RETURNING id

-- name: shelf.list
SELECT id, title, lent_to, reminded FROM shelf_books ORDER BY id LIMIT 100

-- name: shelf.lend
UPDATE shelf_books SET lent_to = :person, back_by = CAST(:now AS BIGINT) + :micros, reminded = 0
WHERE id = :id AND lent_to IS NULL RETURNING id

-- name: shelf.remind
UPDATE shelf_books SET reminded = reminded + 1 WHERE id = :id AND lent_to IS NOT NULL RETURNING title, lent_to

-- name: shelf.count
SELECT count(*) AS books, count(lent_to) AS lent, count(CASE WHEN back_by < CAST(:now AS BIGINT) THEN 1 END) AS late
FROM shelf_books
