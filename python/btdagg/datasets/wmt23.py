"""WMT23 Chinese-English: expert raters compare two translations side by side.

A rater marks errors in both translations of a segment and thereby says which is better: the one
whose errors weigh less (MQM). The archive has one row per marked error and no column that says
which translations were side by side; `_partners` finds that out.
"""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from btdagg._core import InputError
from btdagg.columns import item_ids, whole_numbers
from btdagg.extras import needs
from btdagg.labels import Ratings
from btdagg.sources import read_table
from btdagg.tables import Table, listing, parse_columns, refuse

if TYPE_CHECKING:
    import polars as pl

_MEMBER = "sxs_mqm_generalMT2023_zhen.3ratingsPerSegment.tsv"
_URL = (
    "https://raw.githubusercontent.com/google/wmt-mqm-human-evaluation/"
    f"7fadea281aff8db61cc72fc3d469a4dca78b82a6/generalMT2023/zhen/{_MEMBER}.tar.gz"
)
_SHA256 = "beb5eb98a34a79ec36212488d9044361ec21c8a2c54f50d509c086246244b3e2"

_COLUMNS = (
    "system", "doc", "globalsegid", "rater", "target", "category", "severity", "metadata"
)  # fmt: skip
_NO_ERROR = ("No-error", "HOTW-test")  # the latter checks that the rater is awake
_SEVERITIES = ("Major", "Minor", *_NO_ERROR)
_NOT_THE_TRANSLATION = ("Source issue", "Accuracy/Creative Reinterpretation")
_CATEGORIES = (
    "Accuracy/", "Fluency/", "Locale convention/", "Style/", "Terminology/", "Non-translation",
    "Source issue", "Other", "No-error", "Found", "Missed",
)  # fmt: skip


def load_wmt23(
    path: str | os.PathLike[str] | None = None,
    *,
    download: bool = False,
    drop_identical: bool = True,
) -> Ratings:
    """Load the votes of the expert raters of WMT23 Chinese-English.

    Each of 377 segments has five pairs of translations, and each pair three of eight raters. A
    rater's vote is the sign of the difference of the two MQM scores. The score is a sum over the
    errors that the rater marked: Major 5, Minor 1, Minor Fluency/Punctuation 0.1, Non-translation
    25; what is no error of the translation counts nothing. The lower score is the better.

    Parameters
    ----------
    path : path, optional
        The archive, a ``.tar.gz``, as it lies in the repository google/wmt-mqm-human-evaluation.
    download : bool
        Fetch the archive from there instead (3.6 MB; the extra ``btdagg[datasets]``). It is
        checked by its SHA-256 and kept in the user's cache folder, where later calls find it.
    drop_identical : bool
        Leave out the pairs whose translations are the same text: 1,835 items of 1,885 stay, the
        number in the paper.

    Returns
    -------
    Ratings
        By item and rater, with the columns `item`, `segment`, `doc`, `system_a`, `system_b`,
        `rater`, `mqm_a`, `mqm_b`, `vote` and `identical`. Pairs of a segment share the source:
        split them together.

    Raises
    ------
    InputError
        If there is neither `path` nor `download`, or both; if the download fails or is not the
        archive; if the archive is damaged or is not what it should be: the message names the row.
    ImportError
        If an extra is not installed.

    References
    ----------
    Song et al. (2025), *Enhancing Human Evaluation in Machine Translation with Comparative
    Judgment*; Freitag et al. (2021) for the weights.
    """
    if (path is None) != download:
        raise InputError(
            f"load_wmt23: give either path, a copy of {_MEMBER}.tar.gz, or download=True, "
            f"which fetches it from {_URL}"
        )
    archive = Path(_download() if path is None else path)
    ratings = Ratings(_ratings(_read_errors(archive)), str(archive))
    return ratings.filter({"identical": False}) if drop_identical else ratings


def _download() -> str:
    with needs("datasets", "downloading"):
        import pooch
    try:
        # A file that is already there is only checked; one that fails the check is not kept.
        found: str = pooch.retrieve(
            _URL,
            known_hash=f"sha256:{_SHA256}",
            fname=f"{_MEMBER}.tar.gz",
            path=pooch.os_cache("btdagg"),
            # Not as a stream: pooch would leave that of a failed request open.
            downloader=pooch.HTTPDownloader(stream=False),
        )
    except ValueError:
        raise InputError(f"{_URL}: what came has not the SHA-256 {_SHA256}; not kept") from None
    except OSError as error:
        raise InputError(f"{_URL}: cannot be downloaded: {error}") from None
    return found


# From the archive to a table of errors


def _read_errors(archive: Path) -> Table:
    """Read the rows of the archive with a clean `segment`, `side`, `time` and weight each."""
    import polars as pl

    name = str(archive)
    raw = read_table(_split(_unpack(archive), name), _COLUMNS, name=name)
    ids = dict.fromkeys(("system", "doc", "rater"), item_ids)
    table = Table(parse_columns(raw, {**ids, "globalsegid": whole_numbers}), name)
    known = table.frame["severity"].is_in(_SEVERITIES)
    refuse(table, ~known, "severity", listing(_SEVERITIES))
    # Found and Missed are of the sentences that check whether the rater is awake.
    named = pl.any_horizontal(pl.col("category").str.starts_with(name) for name in _CATEGORIES)
    unknown = table.frame.select(~named).to_series()
    refuse(table, unknown, "category", f"one that begins with {listing(_CATEGORIES)}")
    side, time = (
        table.frame["metadata"].str.json_path_match(f"$.{key}").cast(pl.Int64, strict=False)
        for key in ("side", "timestamp")
    )
    refuse(table, time.is_null(), "metadata", "JSON with a timestamp")
    frame = table.frame.select(
        "system",
        "doc",
        "rater",
        pl.col("globalsegid").alias("segment"),
        # The error is marked inside the text.
        pl.col("target").str.replace_all("</?v>", "").str.strip_chars().alias("text"),
        _tenths().alias("tenths"),
        side.alias("side"),
        time.alias("time"),
    )
    return Table(frame, name)


def _unpack(archive: Path) -> str:
    """Return the text of the archive's one table."""
    try:
        # All at once, since only the end of the file has its checksum.
        content = gzip.decompress(archive.read_bytes())
        with tarfile.open(fileobj=io.BytesIO(content)) as members:
            file = members.extractfile(_MEMBER)
            return file.read().decode() if file else ""
    except FileNotFoundError:
        raise InputError(f"{archive}: no such file") from None
    except KeyError:
        raise InputError(f"{archive}: no {_MEMBER} in the archive") from None
    except (EOFError, UnicodeDecodeError, gzip.BadGzipFile, tarfile.TarError, zlib.error):
        raise InputError(f"{archive}: not a .tar.gz archive, or a damaged one") from None
    except OSError as error:
        raise InputError(f"{archive}: cannot be read: {error.strerror}") from None


def _split(content: str, name: str) -> dict[str, list[str]]:
    """Split tab-separated text, where a quote is a quote, into its columns."""
    header, *lines = content.rstrip("\n").split("\n")
    # The last title is a comment without values.
    titles = [title for title in header.split("\t") if not title.startswith("#")]
    rows = [line.split("\t") for line in lines]
    for number, row in enumerate(rows, start=1):
        if len(row) != len(titles):
            raise InputError(
                f"{name}, row {number}: number of values: got {len(row)}, want {len(titles)}"
            )
    return {title: [row[place] for row in rows] for place, title in enumerate(titles)}


def _tenths() -> pl.Expr:
    """Weigh an error, in tenths: whole numbers, so that sums are exact and equal ones tie."""
    import polars as pl

    category, severity = pl.col("category"), pl.col("severity")
    return (
        pl.when(severity.is_in(_NO_ERROR) | category.is_in(_NOT_THE_TRANSLATION))
        .then(0)
        .when(category.str.starts_with("Non-translation"))
        .then(250)
        .when(severity == "Major")
        .then(50)
        .when(category == "Fluency/Punctuation")
        .then(1)
        .otherwise(10)
    )


# From errors to votes


def _ratings(errors: Table) -> pl.DataFrame:
    """Compare, rater by rater, the errors of the translations that were side by side."""
    import polars as pl

    scores = errors.frame.group_by("segment", "doc", "system", "rater").agg(
        pl.col("tenths").sum(), pl.col("text").first()
    )
    a, b = (scores.rename({"system": f"system_{side}"}) for side in "ab")
    pairs = a.join(_partners(errors), on="system_a").join(
        b, on=["segment", "doc", "system_b", "rater"], suffix="_b"
    )
    for side in "ab":
        scores = scores.join(
            pairs.rename({f"system_{side}": "system"}),
            on=["segment", "system", "rater"],
            how="anti",
        )
    if scores.height:
        segment, _, system, rater, *_ = scores.sort("segment", "system", "rater").row(0)
        raise InputError(
            f"{errors.source}: segment {segment}: {rater} has {system} and not its partner"
        )
    name = pl.format(
        "zhen-{}-{}--{}", pl.col("segment").cast(pl.String).str.zfill(3), "system_a", "system_b"
    )
    per_pair = pairs.group_by("segment", "system_a", "system_b").len("raters")
    most = max(per_pair["raters"], default=0)
    fewer = per_pair.filter(pl.col("raters") < most).sort("segment", "system_a")
    for segment, system_a, system_b, raters in fewer.iter_rows():
        raise InputError(
            f"{errors.source}: segment {segment}, {system_a} and {system_b}: {raters} raters, want "
            f"{most} as elsewhere"
        )
    return pairs.select(
        name.alias("item"),
        "segment",
        "doc",
        "system_a",
        "system_b",
        "rater",
        # By NumPy: polars multiplies by 0.1, and 12 tenths would be 1.2000000000000002.
        mqm_a=pairs["tenths"].to_numpy() / 10,
        mqm_b=pairs["tenths_b"].to_numpy() / 10,
        vote=(pl.col("tenths_b") - pl.col("tenths")).sign().cast(pl.Int8),
        identical=pl.col("text") == pl.col("text_b"),
    ).sort("item", "rater")


def _partners(errors: Table) -> pl.DataFrame:
    """Find the pairs of systems: those that a rater of a document worked on at the same time.

    Which of the two is A is what the metadata say of errors in a translation: side 1 is A, 2 is B.
    Errors in the source have side 0, and rows without an error none.
    """
    import polars as pl

    sessions = errors.frame.group_by("rater", "doc", "system").agg(
        pl.col("time").min().alias("start"), pl.col("time").max().alias("end")
    )
    sides = errors.frame.select("system", "side").unique()
    a, b = (
        sessions.join(sides.filter(pl.col("side") == side), on="system").drop("side")
        for side in (1, 2)
    )
    together = a.join(b, on=["rater", "doc"], suffix="_b").filter(
        (pl.col("start") <= pl.col("end_b")) & (pl.col("start_b") <= pl.col("end"))
    )
    pairs = together.select(system_a="system", system_b="system_b").unique()
    for system in sorted(errors.frame["system"].unique()):
        found = [pair for pair in pairs.sort("system_a", "system_b").rows() if system in pair]
        if len(found) != 1:
            shown = listing(" and ".join(pair) for pair in found) or "none"
            raise InputError(
                f"{errors.source}: pairs side by side that system {system} is in: {shown}; want one"
            )
    return pairs
