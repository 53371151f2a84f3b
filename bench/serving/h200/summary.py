"""The results of a measurement on the GPU, as Markdown."""
import statistics

import report


def _rate(value):
    return f"{value:,.0f}"


def _bare(results):
    ways = {name[6:]: result for name, result in results.items() if name.startswith("bare: ")}
    sizes = sorted({run["batch"] for result in ways.values() for run in result.get("runs", [])})
    rows = []
    for name, result in ways.items():
        if "error" in result:
            rows.append([name, result["error"][:100].replace("\n", " "), *[""] * (len(sizes) - 1)])
            continue
        by_size = {run["batch"]: run["rows_per_second"] for run in result["runs"]}
        rows.append([name, *(_rate(by_size[size]) if size in by_size else "" for size in sizes)])
    return report.table(["bare engine, rows/s by batch", *map(str, sizes or ["–"])], rows) if rows else ""


def _loads(name, runs, best):
    rows = []
    for run in runs:
        clients = run["load"].get("clients") if isinstance(run["load"], dict) else ""
        share = f"{run['rows_per_second'] / best:.0%}" if best else "–"
        failed = run["failed"]["count"] + sum(run["broken"].values())
        rows.append([name, clients, _rate(run["rows_per_second"]), share, f"{run['latency']['p50_ms']:.1f}",
                     f"{run['latency']['p99_ms']:.1f}", _utilization(run.get("gpu_utilization")), run["wrong"], failed])
    return rows


def _served(results):
    best = ((results.get("bare") or {}).get("best") or {}).get("rows_per_second")
    limits = results.get("limits") or {}
    texts = results.get("bert") or {}
    rows = []
    for step, found, limit in [
            ("served", results.get("served"), best), ("flask", results.get("flask"), best),
            ("python", results.get("python"), _best(limits.get("resnet50"))),
            ("peer", results.get("peers"), _best(limits.get("resnet50"))),
            ("BERT, python", texts.get("python"), _best(limits.get("bert"))),
            ("BERT, onnx", texts.get("onnx"), _best(limits.get("bert")))]:
        for name, runs in (found or {}).items():
            if isinstance(runs, list) and runs and isinstance(runs[0], dict) and "latency" in runs[0]:
                rows += _loads(f"{step}, {name}", runs, limit)
    head = ["server", "clients", "rows/s", "relative to the bare loop", "p50 ms", "p99 ms", "GPU busy", "wrong", "failed"]
    return report.table(head, rows) if rows else ""


def _utilization(percents):
    """The median without the warm-up; NVML reports the share of time in which a kernel ran."""
    percents = (percents or [])[len(percents or []) // 4:]
    return f"{statistics.median(percents):.0f} %" if percents else ""


def _best(runs):
    return max((run["rows_per_second"] for run in runs or []), default=None)


def _torch(results):
    limits = results.get("limits") or {}
    runs = (results.get("torch") or {}).get("runs", []) + limits.get("resnet50", []) + limits.get("bert", [])
    rows = [[run["way"], run["batch"], _rate(run["rows_per_second"]) if "error" not in run else run["error"][:80]]
            for run in runs]
    return report.table(["PyTorch alone", "batch", "rows/s"], rows) if rows else ""


def text(document):
    """Returns the report."""
    results = document["results"]
    parts = ["# ResNet-50, half precision" + (" (dry run on the CPU)" if document["dry"] else "")]
    machine = results.get("machine") or {}
    parts.append("\n".join(f"- {name}: {value}" for name, value in machine.items()))
    parts += [_bare(results), _served(results), _torch(results)]
    failed = [f"- {name}: {result['error']}" for name, result in results.items()
              if isinstance(result, dict) and "error" in result]
    parts.append("## Failed\n\n" + "\n".join(failed) if failed else "")
    return "\n\n".join(part for part in parts if part) + "\n"
