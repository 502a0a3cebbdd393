"""Credentials: secrets, their parsing and encryption, the pool, and the lifecycle of each credential.

`lifecycle` decides, and is pure; `manager` writes what it decides; `pool` gives credentials out to requests;
`secrets` has the stored ones and those of the environment.
"""

from catchment.credentials.cipher import Cipher, Sealed, new_key
from catchment.credentials.lifecycle import LifecycleRules
from catchment.credentials.manager import CredentialManager, CredentialView, credential_view, rules_from
from catchment.credentials.pool import CredentialPool
from catchment.credentials.secret import Secret, strip_url, unsure_names, unsure_notes
from catchment.credentials.secrets import SecretStore

__all__ = [
    "Cipher",
    "CredentialManager",
    "CredentialPool",
    "CredentialView",
    "LifecycleRules",
    "Sealed",
    "Secret",
    "SecretStore",
    "credential_view",
    "new_key",
    "rules_from",
    "strip_url",
    "unsure_names",
    "unsure_notes",
]
