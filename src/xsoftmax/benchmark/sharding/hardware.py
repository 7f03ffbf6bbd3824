"""Machines by their published numbers, and the one that the rates were measured on."""

from collections.abc import Mapping
from typing import Any, NamedTuple

MEASURED = "measured machine"


class Hardware(NamedTuple):
    """One node.

    Attributes
    ----------
    name : str
    cores : int
        Physical ones.
    memory : float
        Bytes.
    bandwidth : float or None
        Of memory, bytes per second as published; None where only the measured rate of its cores is known.
    network : float
        Bytes per second, out and in at once.
    latency : float
        Seconds of a round of messages, software included; an assumption.
    source : str
        Where the numbers are from.
    """

    name: str
    cores: int
    memory: float
    bandwidth: float | None
    network: float
    latency: float
    source: str


GIB, GIGABIT = 2.0**30, 1e9 / 8

PUBLISHED = (
    Hardware(
        "AWS r7i.48xlarge",
        96,
        1536 * GIB,
        614.4e9,
        50 * GIGABIT,
        50e-6,
        "EC2 instance types: 192 vCPUs (two a core), 1,536 GiB, 50 Gbit/s; bandwidth is two sockets' peak of eight "
        "channels DDR5-4800; latency assumed for TCP within a placement group",
    ),
    Hardware(
        "Azure HB176rs_v4",
        176,
        768 * GIB,
        780e9,
        400 * GIGABIT,
        5e-6,
        "HBv4 series: 176 cores, 768 GiB, 400 Gbit/s NDR InfiniBand; bandwidth is its STREAM Triad, 750 to "
        "780 GB/s; latency assumed, under 2 µs are published for one byte",
    ),
)


def measured(machine: Mapping[str, Any]) -> Hardware:
    """Describe the machine of a benchmark's file as a node; its network is an assumption."""
    source = "the kernels' file; 10 Gbit/s and latency assumed, bandwidth is what its cores reached"
    memory = machine["memory_gb"] * GIB
    return Hardware(MEASURED, machine["cores"], memory, None, 10 * GIGABIT, 50e-6, source)
