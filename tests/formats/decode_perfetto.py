# SPDX-License-Identifier: GPL-2.0-or-later
"""Decodes a trace that sisdiff wrote with Perfetto's published schema (PyPI: perfetto), and checks what it says.

usage: decode_perfetto.py TRACE.pftrace DECISIONS.jsonl
"""

import json
import sys
from collections import Counter

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb


def unknown_fields(message):
    from google.protobuf import unknown_fields as unknown

    own = len(unknown.UnknownFieldSet(message))
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            own += sum(map(unknown_fields, value)) if hasattr(value, "__len__") else unknown_fields(value)
    return own


trace = pb.Trace()
with open(sys.argv[1], "rb") as file:
    trace.ParseFromString(file.read())
with open(sys.argv[2], encoding="utf-8") as file:
    decisions = [json.loads(line) for line in file]

assert unknown_fields(trace) == 0, "fields that the schema does not know"
assert all(packet.trusted_packet_sequence_id == 1 for packet in trace.packet)
assert trace.packet[0].sequence_flags == 1 and not any(packet.sequence_flags for packet in trace.packet[1:])

tracks = {packet.track_descriptor.uuid: packet.track_descriptor for packet in trace.packet if packet.HasField("track_descriptor")}
roots = [track for track in tracks.values() if not track.HasField("parent_uuid")]
assert [track.name for track in roots] == ["sisdiff"], roots
assert all(track.parent_uuid == roots[0].uuid for track in tracks.values() if track.HasField("parent_uuid"))

switches = Counter()
for packet in trace.packet:
    bundle = packet.ftrace_events
    last = 0
    for event in bundle.event:
        # trace_processor wants the events of a CPU in order.
        assert event.timestamp >= last
        last = event.timestamp
        if event.HasField("sched_switch"):
            switches[bundle.cpu] += 1
            assert event.sched_switch.prev_comm is not None and event.sched_switch.next_pid >= 0
assert switches, "no slices of CPUs"

TYPE = pb.TrackEvent
instants, last_counts = {}, {}
for packet in trace.packet:
    if not packet.HasField("track_event"):
        continue
    event = packet.track_event
    track = tracks[event.track_uuid]
    if event.type == TYPE.TYPE_COUNTER:
        assert track.HasField("counter"), track.name
        assert event.counter_value >= last_counts.get(track.name, 0), "counters never fall"
        last_counts[track.name] = event.counter_value
    else:
        assert event.type == TYPE.TYPE_INSTANT and packet.timestamp > 0
        arguments = {a.name: a.string_value if a.HasField("string_value") else a.uint_value for a in event.debug_annotations}
        instants.setdefault(track.name, []).append((packet.timestamp, event.name, arguments))

specs = [(one["spec"], one["role"]) for one in decisions[0]["decisions"]]
for at, (spec, role) in enumerate(specs):
    told = instants[f"{spec} ({role})"]
    assert len(told) == len(decisions)
    for (ts, name, arguments), line in zip(told, decisions):
        one = line["decisions"][at]
        assert (ts, arguments["wakeup"]) == (line["ts_ns"], line["number"])
        assert name == f"CPU {one['class_cpu']}: {one['exit']}"
        assert arguments["idle checks"] == one["probes"] and arguments["SIS Scanned"] == one["scanned"]
    scanned = sum(line["decisions"][at]["scanned"] for line in decisions)
    assert last_counts[f"SIS Scanned, {spec}"] == scanned

patched = [spec for spec, role in specs if role == "patched"]
baseline = next(spec for spec, role in specs if role == "baseline")
for number, spec in enumerate(patched):
    told = instants.get(f"differs: {spec} from {baseline}", [])
    expected = [line["number"] for line in decisions if line["verdicts"][number]["verdict"] == "diverge"]
    assert [arguments["wakeup"] for _, _, arguments in told] == expected
    assert all("baseline return" in arguments and "patched idle checks" in arguments for _, _, arguments in told)
print(
    f"perfetto: {len(trace.packet)} packets, {sum(switches.values())} switches of {len(switches)} CPUs, "
    f"{len(tracks)} tracks, {len(decisions)} decisions"
)
