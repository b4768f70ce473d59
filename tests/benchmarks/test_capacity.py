"""The model of the capacity page, and the simulation that checks it."""

from __future__ import annotations

from random import Random

import msgspec
import pytest
from benchmarks.capacity_model import Assumptions, Line, ServiceTimes

from benchmarks import capacity, capacity_model, capacity_simulation

TIMES = ServiceTimes(
    read_server=200e-6,
    create_server=250e-6,
    read_database=150e-6,
    wake=0.0,
    client=20e-6,
    read_rest=100e-6,
    create_rest=100e-6,
    batch_server=Line(300e-6, 200e-6),
    batch_database=Line(300e-6, 100e-6),
    batch_wait=Line(1e-3, 0.0),
    shape=(1.0,),
)


@pytest.mark.parametrize("load", [0.3, 0.6])
def test_one_queue_agrees_with_the_formulas(load: float) -> None:
    service = 0.001

    def exponential(random: Random) -> float:
        return random.expovariate(1 / service)

    rate = load / service
    wait = capacity_simulation.single_queue(rate, exponential, 15_000)
    assert wait == pytest.approx(capacity_model.mm1_wait(rate, service), rel=0.1)
    wait = capacity_simulation.single_queue(rate, lambda _: service, 15_000)
    assert wait == pytest.approx(capacity_model.md1_wait(rate, service), rel=0.1)
    assert capacity_model.mg1_wait(rate, service, 0.0) == capacity_model.md1_wait(rate, service)
    assert capacity_model.mg1_wait(rate, service, 1.0) == capacity_model.mm1_wait(rate, service)


def test_a_saturated_server_carries_what_the_model_says() -> None:
    load = capacity_simulation.closed_load(TIMES, capacity_simulation.Machines.read, 24, seconds=1.0)
    assert load.rate == pytest.approx(1 / TIMES.read_server, rel=0.02)
    assert load.utilisation["server"] > 0.99
    # By Little's law.
    assert load.mean == pytest.approx(24 / load.rate, rel=0.05)


def test_writes_are_limited_by_the_lock_whatever_the_number_of_servers() -> None:
    create = capacity_simulation.Machines.create
    for servers in (1, 3):
        load = capacity_simulation.closed_load(TIMES, create, 24 * servers, servers=servers, seconds=1.0)
        assert 3 * capacity_model.write_rate(TIMES, 1) < load.rate < capacity_model.write_rate(TIMES)
        assert load.utilisation["lock"] > 0.5


def test_the_capacity_is_that_of_the_scarcest_part() -> None:
    chosen = Assumptions()
    few = capacity_model.capacity(TIMES, chosen, title="", servers=1, processors=16)
    assert few.limit == "the servers' processors"
    assert few.calls == pytest.approx(chosen.utilisation / capacity_model.server_cpu(TIMES, chosen.writes))
    many = capacity_model.capacity(TIMES, chosen, title="", servers=100, processors=16)
    assert many.limit == "the writers' lock"
    assert many.writes == pytest.approx(chosen.utilisation * capacity_model.write_rate(TIMES))
    small = capacity_model.capacity(TIMES, chosen, title="", servers=None, processors=1)
    spread = capacity_model.capacity(TIMES, chosen, title="", servers=None, processors=1, replicas=2)
    assert small.limit == "PostgreSQL's processors"
    assert small.calls < spread.calls < 3 * small.calls


def test_a_line_is_fitted_to_batches() -> None:
    line = capacity_model.fit([(1, 3.0), (2, 5.0), (4, 9.0)])
    assert (line.fixed, line.each) == pytest.approx((1.0, 2.0))


def test_the_tables_of_the_page_can_be_computed_from_the_stored_measurements() -> None:
    figures = msgspec.json.decode(capacity.FILE.read_bytes(), type=capacity.CapacityFigures)
    found = capacity.tables(figures, Assumptions(), seconds=0.05)
    page = capacity.PAGE.read_text()
    assert capacity.fill_page(page, found) != page
    # These do not depend on simulated time.
    for name in ("carried", "service", "workspaces"):
        assert found[name] in page, f"run python -m benchmarks.capacity --model: {name}"
