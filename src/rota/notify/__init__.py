"""The one way to tell a person: by mail, by a signed webhook, or by a chat service."""

from rota.notify.sending import send
from rota.notify.targets import Target
from rota.signing import new_secret, sign, verify

__all__ = ["Target", "new_secret", "send", "sign", "verify"]
