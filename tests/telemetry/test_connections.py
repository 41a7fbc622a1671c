"""Which connection goes when there are too many."""

from dataclasses import dataclass

from sentinel.telemetry.connections import MAX_CONNECTIONS, MAX_PER_ADDRESS, Connections


@dataclass(eq=False)
class Client:
    address: str = "here"
    waits: bool = True
    ended: bool = False

    def end(self):
        self.ended = True


def filled(clients):
    connections = Connections()
    assert all(map(connections.add, clients))
    return connections


def test_who_has_waited_longest_makes_room():
    clients = [Client(waits=False), *(Client() for _ in range(MAX_PER_ADDRESS - 1))]
    connections = filled(clients)
    assert not any(client.ended for client in clients)
    assert connections.add(Client())
    assert [client.ended for client in clients] == [False, True, *[False] * (MAX_PER_ADDRESS - 2)]


def test_nobody_who_is_being_answered_makes_room():
    clients = [Client(waits=False) for _ in range(MAX_PER_ADDRESS)]
    connections = filled(clients)
    late = Client()
    assert not connections.add(late)
    assert [one for one in (*clients, late) if one.ended] == [late]
    assert connections.add(Client("elsewhere"))
    connections.remove(clients[0])
    assert connections.add(Client())


def test_all_addresses_together_have_a_bound():
    clients = [Client(f"machine {i // 2}") for i in range(MAX_CONNECTIONS)]
    connections = filled(clients)
    assert connections.add(Client("another"))
    assert [one for one in clients if one.ended] == [clients[0]]
    assert len([*connections]) == MAX_CONNECTIONS
