"""Write files whole: aside first, then renamed."""

from pathlib import Path


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file so that it is there in full or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(path.name + ".partial")
    aside.write_bytes(content.encode() if isinstance(content, str) else content)
    aside.replace(path)
