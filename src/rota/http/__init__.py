"""The one guarded HTTP client: what Rota and its applications call others with."""

from rota.http.client import Client, Hop, Response, check, fetch

__all__ = ["Client", "Hop", "Response", "check", "fetch"]
