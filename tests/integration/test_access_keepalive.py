"""Peers of the gRPC door that go away without a word, and peers that ask whether it is there."""

import socket
from collections.abc import Iterator
from typing import NamedTuple

from collector.receivers.limits import DoorLimits
from tests.fixtures.guarded_doors import guarded_doors

SETTINGS, PING, GOAWAY = 4, 6, 7
ACK = 1
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""What a client says first: https://www.rfc-editor.org/rfc/rfc9113#section-3.4"""


class Frame(NamedTuple):
    """Of HTTP/2, about the whole connection."""

    kind: int
    flags: int = 0
    payload: bytes = b""

    def packed(self) -> bytes:
        return len(self.payload).to_bytes(3, "big") + bytes([self.kind, self.flags]) + bytes(4) + self.payload


def connected(port: int) -> socket.socket:
    peer = socket.create_connection(("localhost", port), timeout=30)
    peer.sendall(PREFACE + Frame(SETTINGS).packed() + Frame(SETTINGS, ACK).packed())
    return peer


def frames(peer: socket.socket) -> Iterator[Frame]:
    """What the server says, until it ends the connection. One that stays open fails the test by its timeout."""
    try:
        with peer.makefile("rb") as said:
            while len(head := said.read(9)) == 9:
                yield Frame(head[3], head[4], said.read(int.from_bytes(head[:3], "big")))
    except ConnectionResetError:
        pass


def test_a_peer_that_answers_stays_and_one_that_falls_silent_is_let_go() -> None:
    with guarded_doors(limits=DoorLimits(silent_s=0.1, answer_s=2.0)) as doors, connected(doors.grpc_port) as peer:
        answered = 0
        for frame in frames(peer):
            if (frame.kind, frame.flags) == (PING, 0) and answered < 5:
                peer.sendall(Frame(PING, ACK, frame.payload).packed())
                answered += 1
    assert answered == 5, "a peer without calls that answers was let go"


def test_peers_may_ping_as_often_as_is_allowed() -> None:
    def is_sent_away(ping_pause_s: float) -> bool:
        with (
            guarded_doors(limits=DoorLimits(ping_pause_s=ping_pause_s)) as doors,
            connected(doors.grpc_port) as peer,
        ):
            answers = 0
            for number, frame in enumerate(frames(peer)):
                if frame.kind == GOAWAY:
                    return True
                answers += (frame.kind, frame.flags) == (PING, ACK)
                if answers == 10:
                    return False
                if number == 0 or (frame.kind, frame.flags) == (PING, ACK):
                    peer.sendall(Frame(PING, 0, bytes(8)).packed())
            raise AssertionError("closed without a word")

    assert not is_sent_away(0.0)
    assert is_sent_away(DoorLimits().ping_pause_s)
