# SPDX-License-Identifier: Apache-2.0
"""Tables in Markdown and plots in SVG, from the rows that attention.py makes."""

from pathlib import Path

TITLES = {"decode": "Decode: 16 sequences, one new token each, over context length",
          "prefill": "Prefill: one sequence, causal, over prompt length"}


def names_of(rows: list) -> list:
    """Contenders in the order in which they first appear."""
    return list(dict.fromkeys(name for row in rows for name in row["results"]))


def table(phase: str, rows: list) -> str:
    unit = "GB/s" if phase == "decode" else "GFLOP/s"
    speed, share = ("gbps", "bandwidth_share") if phase == "decode" else ("gflops", "peak_share")
    lines = [f"| length | | best ms | median ms | {unit} | share | tokens/s "
             "| to the fastest peer: bests, medians |", "|---|---|---|---|---|---|---|---|"]
    for row in rows:
        for name, one in row["results"].items():
            ratio = (f"{one['ratio_best']:.2f}, {one['ratio_median']:.2f}"
                     if "ratio_best" in one else "-")
            lines.append(f"| {row['length']} | {name} | {one['best_s'] * 1e3:.3f} | "
                         f"{one['median_s'] * 1e3:.3f} | {one[speed]:.1f} | {one[share]:.0%} | "
                         f"{one['tokens_per_s']:.0f} | {ratio} |")
    return "\n".join(lines)


def limits_of(rows: list) -> str:
    """In one line: they wander, so their range belongs to the figures."""
    least = min(row["limits"]["read_gbps_least"] for row in rows)
    most = max(row["limits"]["read_gbps_most"] for row in rows)
    f32 = [row["limits"]["f32_gflops"] for row in rows]
    bf16 = [row["limits"]["bf16_gflops"] for row in rows]
    text = (f"Limits meanwhile: {least:.0f} to {most:.0f} GB/s read, "
            f"{min(f32):.0f} to {max(f32):.0f} GFLOP/s f32")
    if max(bf16) <= 0:
        return text + "; no bf16 instructions."
    return text + f", {min(bf16):.0f} to {max(bf16):.0f} GFLOP/s bf16."


def tables(about: dict, rows: list) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    text = (f"{about['machine']}, {about['threads']} threads; {about['rounds']} rounds in turn; "
            f"{versions}. 32 query and 8 kv heads of 128, pages of 16 in random order.\n")
    for phase, title in TITLES.items():
        some = [row for row in rows if row["phase"] == phase]
        if some:
            text += f"\n## {title}\n\n{limits_of(some)}\n\n{table(phase, some)}\n"
    return text


def draw_limit(axes, rows: list, label: str, key: str) -> None:
    values = [row["limits"][key] for row in rows]
    if max(values) > 0:
        axes.plot([row["length"] for row in rows], values, color="0.35", linewidth=1, linestyle=":")
        axes.annotate(label, (rows[0]["length"], values[0]), textcoords="offset points",
                      xytext=(0, 4), color="0.35", fontsize=8)


def draw(axes, rows: list, key: str, colors: dict) -> None:
    for name in names_of(rows):
        points = [(row["length"], row["results"][name]) for row in rows if name in row["results"]]
        axes.plot([x for x, _ in points], [one[key] for _, one in points], label=name, marker="o",
                  markersize=3, linewidth=1.5, color=colors[name],
                  linestyle="--" if points[0][1]["is_peer"] else "-")


def finish(axes, rows: list, x_label: str, y_label: str) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xticks([row["length"] for row in rows], [str(row["length"]) for row in rows])
    axes.minorticks_off()
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.grid(axis="y", color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def plot_decode(axes: list, rows: list, colors: dict) -> None:
    """GB/s of what is read, and tokens/s, since caches differ in bytes."""
    draw(axes[0], rows, "gbps", colors)
    draw_limit(axes[0], rows, "linear read", "read_gbps")
    axes[0].set_ylim(bottom=0)
    finish(axes[0], rows, "context", "GB/s of cache, queries and output")
    draw(axes[1], rows, "tokens_per_s", colors)
    axes[1].set_yscale("log")
    finish(axes[1], rows, "context", "tokens/s, all sequences")


def plot_prefill(axes: list, rows: list, colors: dict) -> None:
    draw(axes[0], rows, "gflops", colors)
    draw_limit(axes[0], rows, "f32 peak", "f32_gflops")
    draw_limit(axes[0], rows, "bf16 peak", "bf16_gflops")
    axes[0].set_ylim(bottom=0)
    finish(axes[0], rows, "prompt", "GFLOP/s of visible pairs")


def plots(rows: list, folder: Path) -> None:
    """decode.svg and prefill.svg."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "octavo", "svg.fonttype": "none", "font.size": 9})
    from matplotlib import pyplot

    palette = pyplot.get_cmap("tab10").colors
    colors = {name: palette[i % 10] for i, name in enumerate(names_of(rows))}
    for phase, n_panels, plot in (("decode", 2, plot_decode), ("prefill", 1, plot_prefill)):
        some = [row for row in rows if row["phase"] == phase]
        if not some:
            continue
        figure, axes = pyplot.subplots(1, n_panels, figsize=(5 * n_panels + 2.6, 4), squeeze=False,
                                       layout="constrained")
        plot(list(axes[0]), some, colors)
        axes[0][0].set_title(TITLES[phase], loc="left", fontsize=9)
        handles, labels = axes[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right upper", frameon=False, fontsize=8)
        figure.savefig(folder / f"{phase}.svg", metadata={"Date": None})
        pyplot.close(figure)
