"""WMT23 Chinese-English and English-German: expert raters mark the errors of translations."""
# Raters saw two translations side by side, or one at a time. An archive has one row per marked
# error and does not say which translations were side by side; `_partners` finds that out.

from __future__ import annotations

import gzip
import io
import os
import tarfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from btdagg._util.errors import InputError, forbid, reworded
from btdagg._util.extras import needs
from btdagg._util.lazy import pl
from btdagg.paper.ratings import Ratings

Pair = Literal["zh-en", "en-de"]

_SIDE_BY_SIDE: dict[str, str] = {
    "zh-en": "sxs_mqm_generalMT2023_zhen.3ratingsPerSegment.tsv",
    "en-de": "sxs_mqm_generalMT2023_ende.3ratingsPerSegment.tsv",
}
# One translation at a time.
_DIRECT = {pair: name.removeprefix("sxs_") for pair, name in _SIDE_BY_SIDE.items()}
_RATERS = 3  # of an item in either archive

_URL = (
    "https://raw.githubusercontent.com/google/wmt-mqm-human-evaluation/"
    "7fadea281aff8db61cc72fc3d469a4dca78b82a6/generalMT2023"
)
_SHA256 = {
    _SIDE_BY_SIDE["zh-en"]: "beb5eb98a34a79ec36212488d9044361ec21c8a2c54f50d509c086246244b3e2",
    _SIDE_BY_SIDE["en-de"]: "df9f5af3e6498bb9dddc998acc292ea4a34161f8637dd107de6d692ed319222c",
}

_COLUMNS = (
    *("system", "doc", "docSegId", "globalSegId", "rater", "target", "category", "severity"),
    "metadata",
)
_WEIGHTLESS = ("Neutral", "No-error", "HOTW-test")  # the last checks that the rater is awake
_NOT_THE_TRANSLATION = ("Source issue", "Accuracy/Creative Reinterpretation")


def load_wmt23(
    path: str | os.PathLike[str] | None = None,
    *,
    pair: Pair | None = None,
    ratings: Literal[3, 6] = 3,
    download: bool = False,
    drop_identical: bool = True,
) -> Ratings:
    """Load the votes of the expert raters of WMT23 Chinese-English or English-German.

    Each of 377 segments (en-de: 104) has five pairs of translations, each judged side by side by
    three of eight (ten) raters. A vote is the sign of the difference of two MQM scores, sums over
    marked errors of the translation: Major 5, Minor 1, Minor Fluency/Punctuation 0.1,
    Non-translation 25. The lower score is the better.

    Parameters
    ----------
    path : path, optional
        The side-by-side archive, a ``.tar.gz`` of google/wmt-mqm-human-evaluation.
    pair : {"zh-en", "en-de"}, optional
        The language pair, by default the archive's; of a download, zh-en.
    ratings : {3, 6}
        6 adds three ratings of each pair by raters who saw one translation at a time, as in the
        paper's gold label; their archive lies beside `path` under its own name,
        ``mqm_generalMT2023_<pair>.3ratingsPerSegment.tsv.tar.gz`` (zhen or ende).
    download : bool
        Fetch and cache what is needed (2 to 4 MB an archive; the extra ``btdagg[datasets]``) at a
        fixed commit; side-by-side archives are checked by their digest.
    drop_identical : bool
        Leave out pairs of identical texts. Of 1,885 items 1,835 stay, of 520 (en-de) 510, as in the
        paper.

    Returns
    -------
    Ratings
        By item and rater, with the columns `item`, `segment`, `doc`, `system_a`, `system_b`,
        `rater`, `mqm_a`, `mqm_b`, `vote` and `identical`. Names of raters who saw one translation
        at a time begin with `direct-`; the archives do not say whether raters of one name are one
        person. Pairs of a segment share the source: split them together.

    References
    ----------
    Song et al. (2025), *Enhancing Human Evaluation in Machine Translation with Comparative
    Judgment*; Freitag et al. (2021) for the weights.
    """
    member = _SIDE_BY_SIDE[pair or "zh-en"]
    forbid(
        (path is None) != download,
        f"load_wmt23 needs a source: either path, a copy of {member}.tar.gz, or "
        f"download=True, which fetches it from {_address(member)}",
    )
    archive = Path(_download(member) if path is None else path)
    language, errors = _read_errors(archive, {pair: member} if pair else _SIDE_BY_SIDE)
    rated = _side_by_side(errors, language, str(archive))
    if ratings == 6:
        member = _DIRECT[language]
        direct_archive = (
            Path(_download(member)) if download else archive.with_name(f"{member}.tar.gz")
        )
        _, errors = _read_errors(direct_archive, {language: member})
        rated = _with_direct(rated, errors, str(direct_archive))
    table = Ratings(_votes(rated), str(archive))
    return table.filter({"identical": False}) if drop_identical else table


def _address(member: str) -> str:
    pair = member.partition(".")[0].rpartition("_")[2]
    return f"{_URL}/{pair}/{member}.tar.gz"


def _download(member: str) -> str:
    with needs("datasets", "downloading"):
        import pooch
    url, sha256 = _address(member), _SHA256.get(member)
    with reworded((OSError, ValueError), f"{url}: cannot be downloaded: {{error}}"):
        # A file that is already there is only checked; one that fails the check is not kept.
        path: str = pooch.retrieve(
            url,
            known_hash=None if sha256 is None else f"sha256:{sha256}",
            fname=f"{member}.tar.gz",
            path=pooch.os_cache("btdagg"),
            # Not as a stream: pooch would leave that of a failed request open.
            downloader=pooch.HTTPDownloader(stream=False),
        )
    return path


# From the archive to a table of errors


def _read_errors(archive: Path, members: Mapping[str, str]) -> tuple[str, pl.DataFrame]:
    damage = (EOFError, gzip.BadGzipFile, tarfile.TarError, zlib.error)
    with reworded(damage, f"{archive}: not a .tar.gz archive, or a damaged one"):
        # All at once, since only the end of the file has its checksum.
        content = gzip.decompress(archive.read_bytes())
        with tarfile.open(fileobj=io.BytesIO(content)) as unpacked:
            names = unpacked.getnames()
            pair = next((pair for pair, member in members.items() if member in names), None)
            if pair is None:
                raise InputError(
                    f"{archive}: no {' or '.join(members.values())} in the archive; it has "
                    f"{', '.join(names)}"
                )
            file = unpacked.extractfile(members[pair])
            text = file.read() if file else b""
    raw = pl.read_csv(
        text,
        separator="\t",
        quote_char=None,
        columns=list(_COLUMNS),
        infer_schema=False,
        truncate_ragged_lines=True,
    ).fill_null("")
    return pair, raw.select(
        pl.col("system", "doc", "docSegId", "rater").str.strip_chars(),
        pl.col("globalSegId").cast(pl.Int64).alias("segment"),
        # The error is marked inside the text.
        pl.col("target").str.replace_all("</?v>", "").str.strip_chars().alias("text"),
        _tenths().alias("tenths"),
        "metadata",
    )


def _tenths() -> pl.Expr:
    # In tenths, as whole numbers, sums are exact and equal ones tie.
    category, severity = pl.col("category"), pl.col("severity")
    return (
        pl.when(severity.is_in(_WEIGHTLESS) | category.is_in(_NOT_THE_TRANSLATION))
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


def _side_by_side(errors: pl.DataFrame, pair: str, source: str) -> pl.DataFrame:
    code = pair.replace("-", "")
    number = pl.col("segment").cast(pl.String).str.zfill(3)
    name = pl.format(f"{code}-{{}}-{{}}--{{}}", number, "system_a", "system_b").alias("item")
    return _compared(_partners(errors, source), _scores(errors)).with_columns(name)


def _with_direct(rated: pl.DataFrame, errors: pl.DataFrame, source: str) -> pl.DataFrame:
    shown = {"shown_a": "text_a", "shown_b": "text_b"}
    items = rated.select(
        *("item", "segment", "doc", "docSegId", "system_a", "system_b"), **shown
    ).unique("item")
    # Numbers of segments over all documents may differ from archive to archive.
    direct = _compared(items, _renamed(_scores(errors).drop("segment"), items))
    raters = items.join(direct.group_by("item").len(), on="item", how="left").sort("item")
    uneven = raters.filter(pl.col("len").fill_null(0) != _RATERS)
    if uneven.height:
        item, n_raters = uneven.select("item", pl.col("len").fill_null(0)).row(0)
        raise InputError(f"{source}: item {item} has {n_raters} raters, expected {_RATERS}")
    direct = direct.with_columns(
        rater="direct-" + pl.col("rater"), text_a="shown_a", text_b="shown_b"
    )
    return pl.concat([rated, direct.select(rated.columns)])


def _renamed(scores: pl.DataFrame, items: pl.DataFrame) -> pl.DataFrame:
    # A system that was beside two others has a name for each there, ``S_with_T``, and one here.
    here = set(scores["system"])
    names = {}
    for pair in items.select("system_a", "system_b").unique().rows():
        for name, partner in (pair, pair[::-1]):
            names[name] = name if name in here else name.removesuffix(f"_with_{partner}")
    both = pl.DataFrame({"name": names.keys(), "system": names.values()}, orient="col")
    return both.join(scores, on="system").drop("system").rename({"name": "system"})


def _scores(errors: pl.DataFrame) -> pl.DataFrame:
    return errors.group_by("segment", "doc", "docSegId", "system", "rater").agg(
        pl.col("tenths").sum(), pl.col("text").first()
    )


def _compared(pairs: pl.DataFrame, scores: pl.DataFrame) -> pl.DataFrame:
    # What pairs and scores have in common besides, such as the document, has to agree.
    for side in "ab":
        side_scores = scores.rename(
            {name: f"{name}_{side}" for name in ("system", "tenths", "text")}
        )
        pairs = pairs.join(
            side_scores, on=[name for name in side_scores.columns if name in pairs.columns]
        )
    return pairs


def _votes(rated: pl.DataFrame) -> pl.DataFrame:
    return rated.select(
        *("item", "segment", "doc", "system_a", "system_b", "rater"),
        # By NumPy: polars multiplies by 0.1, and 12 tenths would be 1.2000000000000002.
        mqm_a=rated["tenths_a"].to_numpy() / 10,
        mqm_b=rated["tenths_b"].to_numpy() / 10,
        vote=(pl.col("tenths_b") - pl.col("tenths_a")).sign().cast(pl.Int8),
        identical=pl.col("text_a") == pl.col("text_b"),
    ).sort("item", "rater")


def _partners(errors: pl.DataFrame, source: str) -> pl.DataFrame:
    """Find the pairs of systems: those that a rater of a document worked on at the same time."""
    # Errors in a translation have side 1 (A) or 2 (B), in the source 0, and rows without an error
    # none.
    side, time = (
        errors["metadata"].str.json_path_match(f"$.{key}").cast(pl.Int64, strict=False)
        for key in ("side", "timestamp")
    )
    sessions = (
        errors.with_columns(time=time)
        .group_by("rater", "doc", "system")
        .agg(pl.col("time").min().alias("start"), pl.col("time").max().alias("end"))
    )
    sides = errors.select("system", side=side).unique()
    a, b = (
        sessions.join(sides.filter(pl.col("side") == side), on="system").drop("side")
        for side in (1, 2)
    )
    together = a.join(b, on=["rater", "doc"], suffix="_b").filter(
        (pl.col("start") <= pl.col("end_b")) & (pl.col("start_b") <= pl.col("end"))
    )
    pairs = together.select(system_a="system", system_b="system_b").unique()
    partnered = [*pairs["system_a"], *pairs["system_b"]]
    for system in errors["system"].unique().sort():
        if partnered.count(system) != 1:
            raise InputError(
                f"{source}: system {system} is in {partnered.count(system)} pairs side by side, "
                "expected one"
            )
    return pairs
