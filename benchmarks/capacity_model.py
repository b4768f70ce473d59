"""A model of what servers and databases carry, computed from measured service times.

`python -m benchmarks.capacity` measures, and checks the model with a simulation. All times are in seconds.
"""

from __future__ import annotations

from math import inf
from typing import Final

from msgspec import Struct

#: The connections of a server process at most: two pools of readers; and one each for calls, for writes under
#: the lock, for the change feed, for rate limits and for the upkeep of indexes.
CONNECTIONS_PER_SERVER: Final = 8 + 8 + 5
#: The largest batch of the writer, see `storage/postgres/postgres_committer.py`.
MAX_BATCH: Final = 64


class LoadFigures(Struct, frozen=True):
    """What one load showed."""

    connections: int
    rate: float
    median: float
    p99: float
    #: CPU seconds of each request: in the server, in PostgreSQL and in the client that makes the load.
    server: float
    database: float
    client: float
    #: How many threads of other programs ran on the machine before and after.
    background: float
    #: 101 quantiles of the latency.
    quantiles: tuple[float, ...]


class BatchFigures(Struct, frozen=True):
    """Creates that were submitted together, in the process that holds the store: one batch of the writer."""

    size: int
    #: The elapsed time of the batch, the CPU time of the process, and that of PostgreSQL.
    elapsed: float
    server: float
    database: float
    #: As of a load.
    background: float


class Measurements(Struct, frozen=True):
    """The service times of one run of `benchmarks.capacity_measurements`."""

    machine: str
    processors: int
    #: The load average before and after.
    load: tuple[float, float]
    reads: tuple[LoadFigures, ...]
    creates: tuple[LoadFigures, ...]
    batches: tuple[BatchFigures, ...]
    #: Resident bytes of a server process after the loads.
    server_memory: int
    #: Bytes of tables and indexes, and of write-ahead log, for each created prompt.
    stored_bytes: float
    logged_bytes: float


class Assumptions(Struct, frozen=True):
    """What was not measured."""

    #: The share of calls that write.
    writes: float = 0.1
    #: The highest utilisation at which queues stay short.
    utilisation: float = 0.6
    #: US dollars for an hour of one processor with its memory.
    processor_hour: float = 0.04
    #: The CPU time to replay a write on a replica, compared with that of the write itself.
    replay: float = 0.5
    #: Processors of a large PostgreSQL machine.
    database_processors: int = 16
    max_connections: int = 500


class Line(Struct, frozen=True):
    """A straight line through measured points: a fixed part, and one for each entity."""

    fixed: float
    each: float

    def at(self, count: float) -> float:
        return self.fixed + self.each * count


def fit(points: list[tuple[float, float]]) -> Line:
    """Return the least-squares line through points, with no negative part."""
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    each = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0
    each = max(each, 0.0)
    return Line(max(mean_y - each * mean_x, 0.0), each)


class ServiceTimes(Struct, frozen=True):
    """The service times of a read and of a create, as the model and the simulation use them."""

    #: CPU of the server, without the part of the writer.
    read_server: float
    create_server: float
    #: CPU of PostgreSQL for a read.
    read_database: float
    #: What a server pays more if it is woken for each request: the difference between 1 and many connections.
    wake: float
    #: CPU of the client that makes the load.
    client: float
    #: The rest of the latency at one connection: loopback, scheduler, system calls.
    read_rest: float
    create_rest: float
    #: One batch of the writer: CPU of the server, CPU of PostgreSQL, and waiting (disk, round trips).
    batch_server: Line
    batch_database: Line
    batch_wait: Line
    #: The quantiles of a read's latency at one connection, as multiples of its mean.
    shape: tuple[float, ...]


def stretch(running: float, background: float, processors: int) -> float:
    """Return how much longer everything takes if more threads run than there are processors."""
    return max(1.0, (running + background) / processors)


def service_times(found: Measurements) -> ServiceTimes:
    """Derive the service times from measurements."""
    read_one, read_many = found.reads[0], found.reads[-1]
    create_one, create_many = found.creates[0], found.creates[-1]
    server = fit([(each.size, each.server) for each in found.batches])
    database = fit([(each.size, each.database) for each in found.batches])

    def rest(elapsed: float, background: float, *busy: float) -> float:
        """Return the part of a time in which no processor was busy with it."""
        return max(elapsed - stretch(1, background, found.processors) * sum(busy), 0.0)

    wait = fit(
        [
            (each.size, rest(each.elapsed, each.background, each.server, each.database))
            for each in found.batches
        ]
    )
    count = create_many.connections
    first = found.batches[0]
    mean = sum(read_one.quantiles) / len(read_one.quantiles)
    return ServiceTimes(
        read_server=read_many.server,
        create_server=max(create_many.server - server.at(count) / count, 0.0),
        read_database=read_many.database,
        wake=max(read_one.server - read_many.server, 0.0),
        client=read_many.client,
        read_rest=rest(
            read_one.median, read_one.background, read_one.server, read_one.database, read_many.client
        ),
        create_rest=rest(
            create_one.median - first.elapsed,
            create_one.background,
            create_one.server - first.server,
            create_many.client,
        ),
        batch_server=server,
        batch_database=database,
        batch_wait=wait,
        shape=tuple(each / mean for each in read_one.quantiles),
    )


# Queues


def mm1_wait(rate: float, service: float) -> float:
    """Return the mean wait before the service, which is exponential, with Poisson arrivals."""
    load = rate * service
    return load * service / (1 - load) if load < 1 else inf


def md1_wait(rate: float, service: float) -> float:
    """Return the mean wait before the service, which is constant."""
    return mm1_wait(rate, service) / 2


def mg1_wait(rate: float, service: float, variation: float) -> float:
    """Return the mean wait (Pollaczek-Khinchine). `variation`: the squared coefficient of variation."""
    return mm1_wait(rate, service) * (1 + variation) / 2


def squared_variation(shape: tuple[float, ...]) -> float:
    """Return the squared coefficient of variation of a distribution given by its quantiles."""
    mean = sum(shape) / len(shape)
    return sum((each - mean) ** 2 for each in shape) / len(shape) / mean**2


# What everything carries


class Capacity(Struct, frozen=True):
    """What one kind of installation carries."""

    title: str
    calls: float
    writes: float
    #: What is exhausted first.
    limit: str
    servers: int
    connections: int
    #: US dollars for a million calls.
    price: float


def write_rate(times: ServiceTimes, batch: int = MAX_BATCH) -> float:
    """Return the writes a second of one database with full batches: the lock is held for a whole batch."""
    return batch / (
        times.batch_server.at(batch) + times.batch_database.at(batch) + times.batch_wait.at(batch)
    )


def write_database_cpu(times: ServiceTimes, batch: int) -> float:
    """Return PostgreSQL's CPU for one write in a batch."""
    return times.batch_database.at(batch) / batch


def server_cpu(times: ServiceTimes, writes: float, batch: int = 8) -> float:
    """Return a server's CPU for a mean call."""
    write = times.create_server + times.batch_server.at(batch) / batch
    return (1 - writes) * times.read_server + writes * write


def database_cpu(times: ServiceTimes, writes: float, batch: int = 8) -> float:
    """Return PostgreSQL's CPU for a mean call."""
    return (1 - writes) * times.read_database + writes * write_database_cpu(times, batch)


def capacity(
    times: ServiceTimes,
    chosen: Assumptions,
    *,
    title: str,
    servers: int | None,
    processors: int,
    replicas: int = 0,
) -> Capacity:
    """Return what servers on one database carry. `servers`: `None` for as many as the database needs.

    `processors`: those of PostgreSQL and of each replica.
    """
    share, target = chosen.writes, chosen.utilisation
    of_server = target / server_cpu(times, share)
    write = write_database_cpu(times, MAX_BATCH)
    limits = {
        "the writers' lock": target * write_rate(times) / share,
        "PostgreSQL's processors": _database_calls(times, chosen, processors, replicas, write),
    }
    if servers is not None:
        limits["the servers' processors"] = servers * of_server
    limit = min(limits, key=limits.__getitem__)
    calls = limits[limit]
    needed = servers or max(1, round(calls / of_server + 0.5))
    replay = replicas * share * write * chosen.replay
    seconds = server_cpu(times, share) + database_cpu(times, share, MAX_BATCH) + replay
    return Capacity(
        title=title,
        calls=calls,
        writes=calls * share,
        limit=limit,
        servers=needed,
        connections=needed * CONNECTIONS_PER_SERVER,
        price=seconds / target / 3600 * chosen.processor_hour * 1e6,
    )


def _database_calls(
    times: ServiceTimes, chosen: Assumptions, processors: int, replicas: int, write: float
) -> float:
    """Return the calls a second for which PostgreSQL and its replicas have processors.

    With replicas, the primary writes, and the reads are spread so that all are equally busy.
    """
    share = chosen.writes
    read = (1 - share) * times.read_database
    total = read + share * write + replicas * share * write * chosen.replay
    spread = chosen.utilisation * processors * (1 + replicas) / total
    primary = chosen.utilisation * processors / (share * write) if share * write else inf
    return min(spread, primary)
