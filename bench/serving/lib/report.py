"""Tables of a run, as Markdown."""
import os
import pathlib
import statistics

from servers import OURS_PYTHON


def machine():
    """Describes the machine in one line."""
    try:
        name = next(line.split(":", 1)[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                    if line.startswith("model name"))
    except (OSError, StopIteration):
        name = "unknown processor"
    return f"{name}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"


def table(head, rows):
    """A Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows])


def _figure(throughput, p99):
    return "" if throughput is None else f"{throughput:,.0f} ({p99:.1f})"


def _ratio(ours, other):
    return "–" if not ours or not other else f"{ours / other:.2f}"


def _best(results, model, peers, count):
    found = [(results.median(model, peer.name, "closed", "throughput", count) or 0, peer.name) for peer in peers]
    return max(found, default=(0, ""))


def _limit(limits, model):
    """The highest rate possible with the bare engine and the JSON work together."""
    runs = (limits.get(model) or {}).get("runs") or []
    return max((run["with_json_rows_per_second"] or 0 for run in runs), default=None)


def _conditions(results, model):
    """How undisturbed the measurements were, and whether the answers were correct."""
    runs, parts = [run for run in results.runs if run["model"] == model], []
    if runs:
        others = [run["others"] for run in runs]
        parts.append(f"- other programs used {statistics.median(others):.0%} of the server's core (median), "
                     f"{max(others):.0%} at worst")
    checked, wrong = (sum(run[key] for run in runs) for key in ("checked", "wrong"))
    return [*parts, f"- responses checked: {checked:,}; wrong: {wrong}"]


def _model(document, results, options, model):
    counts = sorted({run["clients"] for run in results.runs if run["model"] == model and run["loop"] == "closed"})
    names = list(dict.fromkeys(run["server"] for run in results.runs if run["model"] == model))
    ours = "cudock"
    rows = []
    for name in sorted(names, key=lambda name: results.saturation(model, name) or 0):
        memory = results.median(model, name, "closed", "memory")
        p99 = results.median(model, name, "open", "p99_ms")
        rate = results.median(model, name, "open", "rate")
        rows.append([
            name,
            *(_figure(results.median(model, name, "closed", "throughput", count),
                      results.median(model, name, "closed", "p99_ms", count)) for count in counts),
            "" if p99 is None else f"{p99:.2f} at {rate:,.0f}/s",
            "" if memory is None else f"{memory / 1e6:.0f}"])
    parts = [f"## {model}\n",
             "Requests/s (p99 in ms) by closed-loop clients; p99 in ms at 70 % of saturation; memory in MB.\n",
             table(["server", *map(str, counts), "p99 at 70 %", "memory"], rows), ""]
    peers = [peer for peer in options.peers if peer.protocol != "oip-binary"]
    for count in counts:
        best, name = _best(results, model, peers, count)
        own = results.median(model, ours, "closed", "throughput", count)
        if own and best:
            parts.append(f"- {count} clients: {_ratio(own, best)} times the best other server with JSON ({name})")
    limit, own = _limit(document["limits"], model), results.saturation(model, ours)
    if limit and own:
        parts.append(f"- saturation: {own / limit:.0%} of bare engine plus JSON work ({limit:,.0f}/s)")
    open_peers = [(results.median(model, peer.name, "open", "p99_ms"), peer.name) for peer in options.peers]
    open_peers = [(p99, name) for p99, name in open_peers if p99 is not None]
    own = results.median(model, ours, "open", "p99_ms")
    if open_peers and own is not None:
        best, name = min(open_peers)
        parts.append(f"- p99 at 70 % of own saturation: {own:.2f} ms; best other server: {best:.2f} ms ({name})")
        at_peers = results.median(model, ours, "peer's rate", "p99_ms")
        if at_peers is not None:
            rate = results.median(model, ours, "peer's rate", "rate")
            parts.append(f"- p99 at 70 % of the fastest other server's saturation ({rate:,.0f}/s): {at_peers:.2f} ms")
    by_wrk = [(name, results.median(model, name, "wrk", "throughput")) for name in names]
    by_wrk = {name: value for name, value in by_wrk if value}
    if by_wrk:
        told = ", ".join(f"{name} {value:,.0f}/s" for name, value in by_wrk.items())
        parts.append(f"- the same with wrk, 32 clients: {told}")
    return "\n".join(parts + _conditions(results, model))


def pair(name):
    """The name of the open loop in which a server and cudock have the same rate."""
    return f"rate of {name}"


def _python_model(document, results, options, model):
    counts = sorted({run["clients"] for run in results.runs if run["model"] == model and run["loop"] == "closed"})
    ours = [kind.name for kind in OURS_PYTHON]

    def closed(name):
        return [_figure(results.median(model, name, "closed", "throughput", count),
                        results.median(model, name, "closed", "p99_ms", count)) for count in counts]

    def memory(name):
        used = results.median(model, name, "closed", "memory")
        return "" if used is None else f"{used / 1e6:.0f}"

    def p99(name, peer):
        found = results.median(model, name, pair(peer), "p99_ms")
        return "" if found is None else f"{found:.2f}"

    peers = sorted((peer.name for peer in options.peers), key=lambda name: results.saturation(model, name) or 0)
    rows = []
    for name in peers:
        throughput, rate = results.saturation(model, name), results.median(model, name, pair(name), "rate")
        rows.append([name, *closed(name), memory(name), "" if rate is None else f"{rate:,.0f}", p99(name, name),
                     *(cell for own in ours for cell in (_ratio(results.saturation(model, own), throughput), p99(own, name)))])
    rows += [[name, *closed(name), memory(name), *[""] * (2 + 2 * len(ours))] for name in ours]
    heads = [head for name in ours for head in (f"{name} / it", "its p99")]
    parts = [f"## {model}\n",
             "Requests/s (p99 in ms) by closed-loop clients; memory in MB; an open loop at 70 % of the server's own "
             "throughput, with its p99 in ms; how many times its throughput cudock has, and its p99 at the same rate.\n",
             table(["server", *map(str, counts), "memory", "70 %", "p99", *heads], rows), ""]
    limits = (document["limits"].get(model) or {}).get("runs") or []
    if limits:
        parts.append("- torch without a server: " + ", ".join(
            f"{run['rows_per_second']:,.0f} rows/s with batches of {run['batch']}" for run in limits))
    return "\n".join(parts + _conditions(results, model))


def text(document, results, options):
    """The whole report."""
    parts = [f"# Serving comparison\n\n{document['when']}, {document['machine']}; {document['rounds']} rounds"
             + (", quick" if document["quick"] else "")]
    of_model = _python_model if options.python_models else _model
    parts += [of_model(document, results, options, model) for model in options.models]
    if document["failures"]:
        failures = (f"- {item['what']}: {item['reason']}" for item in document["failures"])
        parts.append("## Failed\n\n" + "\n".join(failures))
    return "\n\n".join(parts)
