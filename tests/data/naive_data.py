"""Slow references for the compiled parsers: Python's own splitting and float."""

import numpy as np
from scipy.sparse import csr_array


def labelled_rows(lines, base):
    """Parse ``l1,l2 f:v ...`` lines; give labels by row and a dense dict of entries by row."""
    labels, entries = [], []
    for line in lines:
        words = line.split("#")[0].split()
        has_labels = bool(words) and ":" not in words[0]
        labels.append([int(float(word)) for word in words[0].split(",")] if has_labels else [])
        row = {}
        for word in words[has_labels:]:
            if not word.startswith("qid:"):
                feature, value = word.split(":")
                row[int(feature) - base] = row.get(int(feature) - base, 0.0) + float(value)
        entries.append(row)
    return labels, entries


def arff_rows(lines, is_label):
    """Parse ``{attribute value, ...}`` rows; attributes are split into features and labels in their order."""
    column, label = np.cumsum(~is_label) - 1, np.cumsum(is_label) - 1
    labels, entries = [], []
    for line in lines:
        row, found = {}, []
        for pair in line.strip().strip("{}").split(","):
            if pair.strip():
                attribute, value = pair.split()
                if is_label[int(attribute)]:
                    found += [int(label[int(attribute)])] if float(value) else []
                else:
                    row[int(column[int(attribute)])] = float(value)
        labels.append(found)
        entries.append(row)
    return labels, entries


def matrix(entries, n_features):
    """Make a CSR matrix of dicts, one per row."""
    rows = [i for i, row in enumerate(entries) for _ in row]
    columns = [j for row in entries for j in row]
    values = [v for row in entries for v in row.values()]
    return csr_array((np.array(values, np.float32), (rows, columns)), shape=(len(entries), n_features))


def tfidf(texts, token, min_df):
    """Weigh words by scikit-learn's documented formula, without its code; no normalisation."""
    import re
    from collections import Counter

    counts = [Counter(re.findall(token, text.lower())) for text in texts]
    frequency = Counter(word for each in counts for word in each)
    words = sorted(word for word, df in frequency.items() if df >= min_df)
    idf = np.array([np.log((1 + len(texts)) / (1 + frequency[word])) + 1 for word in words])
    return np.array([[each[word] for word in words] for each in counts]) * idf, words


def skip_gram_pairs(sentences, window):
    """Pair every word of a sentence with those up to ``window`` places away, from left to right."""
    return [
        (centre, context)
        for words in sentences
        for i, centre in enumerate(words)
        for j, context in enumerate(words)
        if 0 < abs(i - j) <= window
    ]
