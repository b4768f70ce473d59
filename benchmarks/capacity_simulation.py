"""A discrete-event simulation of servers on a database, to check the model of `capacity_model`.

A process is a generator. It yields a number of seconds to wait, or something to queue for.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Generator
from itertools import count
from random import Random
from typing import Final, Protocol

from msgspec import Struct

from benchmarks.capacity_model import MAX_BATCH, ServiceTimes, stretch

#: The connections of a server for the reads of one kind of viewer.
POOL: Final = 8
_ENDLESS: Final = 1 << 30


class Waitable(Protocol):
    """Something that a process can queue for."""

    def add(self, process: Process) -> None: ...


Process = Generator["float | Waitable", None, None]


class Simulation:
    """The clock and the events."""

    def __init__(self, seed: int = 1) -> None:
        self.now = 0.0
        self.random = Random(seed)
        self._events: list[tuple[float, int, Process]] = []
        self._numbers = count()

    def resume(self, process: Process, delay: float = 0.0) -> None:
        """Start or continue a process."""
        heapq.heappush(self._events, (self.now + delay, next(self._numbers), process))

    def run(self, until: float) -> None:
        while self._events and self._events[0][0] <= until:
            self.now, _, process = heapq.heappop(self._events)
            step = next(process, None)
            if isinstance(step, int | float):
                self.resume(process, step)
            elif step is not None:
                step.add(process)
        self.now = until


class Resource:
    """Something that a number of processes can hold at the same time, in the order of their arrival."""

    def __init__(self, simulation: Simulation, size: int = 1) -> None:
        self._simulation = simulation
        self._size = size
        self._held = 0
        self._queue: deque[Process] = deque()
        self._busy = 0.0
        self._since = 0.0

    def add(self, process: Process) -> None:
        if self._held < self._size:
            self._count(1)
            self._simulation.resume(process)
        else:
            self._queue.append(process)

    def release(self) -> None:
        if self._queue:
            self._simulation.resume(self._queue.popleft())
        else:
            self._count(-1)

    def duration(self, seconds: float) -> float:
        """Return how long it takes to use it for a time."""
        return seconds

    @property
    def is_idle(self) -> bool:
        return self._held == 0

    def _count(self, change: int) -> None:
        self._busy += self._held * (self._simulation.now - self._since)
        self._since = self._simulation.now
        self._held += change

    def utilisation(self) -> float:
        self._count(0)
        return self._busy / self._size / self._simulation.now


class Processors(Resource):
    """Processors that take turns between all threads, also those of other programs, which never sleep."""

    def __init__(self, simulation: Simulation, count: int, background: float = 0.0) -> None:
        super().__init__(simulation, _ENDLESS)
        self._count_of_processors = count
        self._background = background

    def duration(self, seconds: float) -> float:
        return seconds * stretch(self._held, self._background, self._count_of_processors)


def use(resource: Resource, seconds: float) -> Process:
    """Hold a resource for a time."""
    yield resource
    yield resource.duration(seconds)
    resource.release()


class SimulatedLoad(Struct, frozen=True):
    """The result of one simulated load."""

    rate: float
    median: float
    p99: float
    mean: float
    #: By resource.
    utilisation: dict[str, float]


def summarise(latencies: list[float], seconds: float, utilisation: dict[str, float]) -> SimulatedLoad:
    latencies.sort()
    last = len(latencies) - 1
    return SimulatedLoad(
        rate=len(latencies) / seconds,
        median=latencies[last // 2],
        p99=latencies[int(0.99 * last)],
        mean=sum(latencies) / len(latencies),
        utilisation=utilisation,
    )


class Machines:
    """Servers and a database: which processor runs what, and who waits for whom."""

    def __init__(
        self,
        simulation: Simulation,
        times: ServiceTimes,
        *,
        servers: int = 1,
        shared: Processors | None = None,
    ) -> None:
        """`shared`: the processors of servers, database and clients; `None` if each has its own."""
        self.simulation = simulation
        self.times = times
        #: One thread for each server process, and the processors that run it.
        self.threads = [Resource(simulation) for _ in range(servers)]
        self.pools = [Resource(simulation, POOL) for _ in range(servers)]
        self.server_processors = [shared or Resource(simulation) for _ in range(servers)]
        self.database = shared or Resource(simulation, 4)
        self.client_processor = shared
        self.client = Resource(simulation)
        #: The lock that writers hold for a whole batch.
        self.lock = Resource(simulation)
        self.writers = [GroupCommit(self, number) for number in range(servers)]

    def draw(self, mean: float) -> float:
        """Return a service time with this mean and the measured distribution."""
        return mean * self.simulation.random.choice(self.times.shape)

    def compute(self, server: int, seconds: float) -> Process:
        """Run on the event loop of a server. One that sleeps has to be woken."""
        thread = self.threads[server]
        wake = self.times.wake / 2 if thread.is_idle else 0.0
        yield thread
        yield from use(self.server_processors[server], seconds + wake)
        thread.release()

    def spend_client_time(self) -> Process:
        """The client that makes the load has one thread, too."""
        if self.client_processor is not None:
            yield self.client
            yield from use(self.client_processor, self.times.client)
            self.client.release()

    def read(self, server: int) -> Process:
        """One read, from the request to the response."""
        yield from self.compute(server, self.draw(self.times.read_server / 2))
        yield self.pools[server]
        yield self.times.read_rest
        yield from use(self.database, self.draw(self.times.read_database))
        self.pools[server].release()
        yield from self.compute(server, self.draw(self.times.read_server / 2))

    def create(self, server: int) -> Process:
        """One create, from the request to the response."""
        yield from self.compute(server, self.draw(self.times.create_server / 2))
        yield self.times.create_rest
        yield self.writers[server]
        yield from self.compute(server, self.draw(self.times.create_server / 2))


class GroupCommit:
    """The writer of one server, which commits all waiting writes together."""

    def __init__(self, machines: Machines, server: int) -> None:
        self._machines = machines
        self._server = server
        self._queue: deque[Process] = deque()
        self._is_running = False

    def add(self, process: Process) -> None:
        self._queue.append(process)
        if not self._is_running:
            self._is_running = True
            self._machines.simulation.resume(self._run())

    def _run(self) -> Process:
        machines, times = self._machines, self._machines.times
        while self._queue:
            yield machines.lock
            batch = [self._queue.popleft() for _ in range(min(len(self._queue), MAX_BATCH))]
            size = len(batch)
            yield from machines.compute(self._server, times.batch_server.at(size))
            yield machines.draw(times.batch_wait.at(size))
            yield from use(machines.database, times.batch_database.at(size))
            machines.lock.release()
            for process in batch:
                machines.simulation.resume(process)
        self._is_running = False


Operation = Callable[[Machines, int], Process]


def closed_load(
    times: ServiceTimes,
    operation: Operation,
    connections: int,
    *,
    servers: int = 1,
    processors: int | None = None,
    background: float = 0.0,
    seconds: float = 5.0,
) -> SimulatedLoad:
    """Keep a number of connections busy, as the measuring client does.

    `processors`: those that everything shares; `None` if each part has its own.
    """
    simulation = Simulation()
    shared = None if processors is None else Processors(simulation, processors, background)
    machines = Machines(simulation, times, servers=servers, shared=shared)
    latencies: list[float] = []

    def connection(server: int) -> Process:
        while True:
            started = simulation.now
            yield from operation(machines, server)
            yield from machines.spend_client_time()
            latencies.append(simulation.now - started)

    for number in range(connections):
        simulation.resume(connection(number % servers))
    simulation.run(seconds)
    return summarise(latencies, seconds, _utilisation(machines))


def open_load(
    times: ServiceTimes, writes: float, rate: float, *, servers: int = 1, seconds: float = 20.0
) -> SimulatedLoad:
    """Let requests arrive at random, from many clients, on machines that share no processors."""
    simulation = Simulation()
    machines = Machines(simulation, times, servers=servers)
    latencies: list[float] = []

    def request(server: int) -> Process:
        started = simulation.now
        is_write = simulation.random.random() < writes
        yield from (machines.create if is_write else machines.read)(server)
        latencies.append(simulation.now - started)

    def arrivals() -> Process:
        for number in count():
            yield simulation.random.expovariate(rate)
            simulation.resume(request(number % servers))

    simulation.resume(arrivals())
    simulation.run(seconds)
    return summarise(latencies, seconds, _utilisation(machines))


def _utilisation(machines: Machines) -> dict[str, float]:
    threads = [thread.utilisation() for thread in machines.threads]
    return {
        "server": sum(threads) / len(threads),
        "database": machines.database.utilisation(),
        "lock": machines.lock.utilisation(),
    }


def single_queue(rate: float, draw: Callable[[Random], float], arrivals: int, seed: int = 1) -> float:
    """Return the mean wait before one resource, with Poisson arrivals and service times from `draw`."""
    simulation = Simulation(seed)
    resource = Resource(simulation)
    waits: list[float] = []

    def customer() -> Process:
        came = simulation.now
        yield resource
        waits.append(simulation.now - came)
        yield draw(simulation.random)
        resource.release()

    def source() -> Process:
        for _ in range(arrivals):
            yield simulation.random.expovariate(rate)
            simulation.resume(customer())

    simulation.resume(source())
    simulation.run(2 * arrivals / rate)
    return sum(waits) / len(waits)
