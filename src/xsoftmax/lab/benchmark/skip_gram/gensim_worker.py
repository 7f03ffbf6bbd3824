"""One fit of gensim in an environment of its own: a job as JSON on standard input, what was measured on output.

The text has a sentence a line, of which all words count. gensim holds it in memory while it trains.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import gensim
import numpy as np
from gensim.models import Word2Vec


def main() -> None:
    """Train, write vectors beside the text, and tell how long that took."""
    job = json.loads(sys.stdin.read())
    folder = Path(job["folder"])
    sentences = [line.split() for line in (folder / "text").read_text(encoding="utf-8").splitlines()]
    model = Word2Vec(
        vector_size=job["dimension"],
        window=job["window"],
        negative=job["negatives"],
        hs=int(job["loss"] == "hierarchical-softmax"),
        ns_exponent=job["power"],
        sample=job["subsample"],
        alpha=job["learning_rate"],
        min_alpha=job["learning_rate"] * 1e-4,
        min_count=1,
        sg=1,
        workers=1,
        seed=job["seed"],
        max_final_vocab=None,
    )
    model.build_vocab(sentences)
    wall, cpu = time.perf_counter(), time.process_time()
    model.train(sentences, total_examples=model.corpus_count, epochs=job["epochs"])
    seconds = {"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}
    outputs = model.syn1 if job["loss"] == "hierarchical-softmax" else model.syn1neg
    np.savez(folder / "gensim.npz", inputs=model.wv.vectors, outputs=outputs, **paths(model, job["loss"]))
    (folder / "gensim.words").write_text("\n".join(model.wv.index_to_key), encoding="utf-8")
    print(json.dumps(seconds | {"version": gensim.__version__}))


def paths(model: Word2Vec, loss: str) -> dict[str, Any]:
    """Give inner nodes and sides of each word's path, one after the other, and the lengths of paths."""
    if loss != "hierarchical-softmax":
        return {}
    found = {
        key: [np.asarray(model.wv.get_vecattr(word, name)) for word in model.wv.index_to_key]
        for key, name in (("nodes", "point"), ("sides", "code"))
    }
    lengths = np.array([len(each) for each in found["nodes"]])
    return {"lengths": lengths} | {key: np.concatenate(each) for key, each in found.items()}


if __name__ == "__main__":
    main()
