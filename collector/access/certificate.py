"""The certificate that all doors show."""

import ssl
from pathlib import Path
from typing import NamedTuple, Self

import grpc

from collector.access.secret import AccessError

SETTINGS = "TACHOGRAPH_TLS_CERTIFICATE and TACHOGRAPH_TLS_KEY"


class Certificate(NamedTuple):
    """A certificate with its chain, and its key, as PEM files that belong together. Made by `load`."""

    chain: Path
    key: Path

    @classmethod
    def load(cls, chain: Path, key: Path) -> Self:
        """Check both files.

        Raises:
            AccessError: one cannot be read, is no PEM, needs a passphrase, or they do not belong together.
        """
        certificate = cls(chain, key)
        certificate.server_context()
        return certificate

    def server_context(self) -> ssl.SSLContext:
        """For the HTTP doors: TLS 1.2 or newer."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        try:
            context.load_cert_chain(self.chain, self.key, password=_no_passphrase)
        except (OSError, AccessError) as error:
            raise AccessError(f"{SETTINGS} ({self.chain}, {self.key}): {_why(error)}") from error
        return context

    def grpc_credentials(self) -> grpc.ServerCredentials:
        """For the gRPC door."""
        return grpc.ssl_server_credentials([(self.key.read_bytes(), self.chain.read_bytes())])


def trusting(certificates: Path | None) -> ssl.SSLContext:
    """For a client: trusts these certificates, or else the system's.

    Raises:
        AccessError: they cannot be read.
    """
    try:
        return ssl.create_default_context(cafile=certificates)
    except OSError as error:
        raise AccessError(f"TACHOGRAPH_TLS_CA ({certificates}): {_why(error)}") from error


def _no_passphrase() -> str:
    raise AccessError("the key needs a passphrase, which nobody could type here: give one without")


def _why(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        mismatch = error.reason == "KEY_VALUES_MISMATCH"
        return "they do not belong together" if mismatch else "not what it should be, in PEM"
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
