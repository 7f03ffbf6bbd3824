"""numba's cache on disk, made safe for programs that compile at the same time, as the jobs of a workflow do.

numba numbers the files of a function's signatures, 1, 2, ...: two programs that take the same number leave an index
that names the other's code, which then runs with arguments of other types (numba's issues 4807 and 10128). Here a
file's number is a hash of its signature, so that whoever writes it writes the same.
"""

import hashlib
from typing import Any

from numba.core import caching


class FileBySignature(caching.IndexDataCacheFile):
    """Cache files of one function."""

    def save(self, key: Any, data: Any) -> None:
        """Write the code of a signature, then name it in the index."""
        digest = hashlib.sha256(self._dump(key)).digest()
        name = self._data_name(int.from_bytes(digest[:8]))
        self._save_data(name, data)
        overloads = self._load_index()
        self._save_index({**overloads, key: name})


caching.IndexDataCacheFile = FileBySignature  # type: ignore[misc]
