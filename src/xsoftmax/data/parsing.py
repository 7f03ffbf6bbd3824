"""Compiled parsing of sparse text: lines ``labels feature:value ...`` and rows ``{attribute value, ...}``.

A kernel gets a block of whole lines as bytes and fills arrays that are large enough for whatever the block
may hold. At the first thing it cannot read it stops and says what and where, in ``status``.
"""

import numpy as np

from xsoftmax.internal.compiled import njit

(
    OK,
    BAD_INDEX,
    NO_COLON,
    BAD_VALUE,
    NOT_FINITE,
    INDEX_RANGE,
    BAD_LABEL,
    LABEL_RANGE,
    NO_BRACE,
    BAD_SEPARATOR,
    NO_LABEL,
    BAD_COUNT,
) = range(12)
CODE, POSITION, N_ROWS, N_ENTRIES, N_LABELS, UNSORTED, MAX_INDEX, FAILED = range(8)
STATUS_SIZE = 8

TAB, NEWLINE, RETURN, SPACE, HASH, PERCENT = 9, 10, 13, 32, 35, 37
PLUS, COMMA, MINUS, POINT, ZERO, NINE, COLON = 43, 44, 45, 46, 48, 57, 58
LETTER_E, LETTER_Q, SMALL_E, SMALL_Q, OPEN, CLOSE = 69, 81, 101, 113, 123, 125
LARGEST = 3.4028234663852886e38
POWERS = 10.0 ** np.arange(23)


@njit(cache=True, nogil=True)
def count_marks(text):
    """Count newlines, colons and commas."""
    newlines, colons, commas = 0, 0, 0
    for p in range(text.size):
        c = text[p]
        newlines += c == NEWLINE
        colons += c == COLON
        commas += c == COMMA
    return newlines, colons, commas


@njit(cache=True, nogil=True)
def _scaled(mantissa, exponent):
    value = float(mantissa)
    if exponent == 0 or mantissa == 0:
        return value
    if -22 <= exponent <= 22:
        return value / POWERS[-exponent] if exponent < 0 else value * POWERS[exponent]
    return value * 10.0 ** float(max(-400, min(400, exponent)))


@njit(cache=True, nogil=True)
def read_number(text, p):
    """Read a decimal number; give its value, the position behind it, and whether there was one."""
    negative = text[p] == MINUS
    if negative or text[p] == PLUS:
        p += 1
    mantissa, exponent, digits = np.int64(0), 0, 0
    while ZERO <= text[p] <= NINE:
        if mantissa < 100000000000000000:
            mantissa = mantissa * 10 + (text[p] - ZERO)
        else:
            exponent += 1
        digits += 1
        p += 1
    if text[p] == POINT:
        p += 1
        while ZERO <= text[p] <= NINE:
            if mantissa < 100000000000000000:
                mantissa = mantissa * 10 + (text[p] - ZERO)
                exponent -= 1
            digits += 1
            p += 1
    if digits == 0:
        return 0.0, p, False
    if text[p] == SMALL_E or text[p] == LETTER_E:
        p += 1
        minus = text[p] == MINUS
        if minus or text[p] == PLUS:
            p += 1
        power, digits = 0, 0
        while ZERO <= text[p] <= NINE:
            power = min(10000, power * 10 + (text[p] - ZERO))
            digits += 1
            p += 1
        if digits == 0:
            return 0.0, p, False
        exponent += -power if minus else power
    value = _scaled(mantissa, exponent)
    return (-value if negative else value), p, True


@njit(cache=True, nogil=True)
def _skip_spaces(text, p):
    while text[p] == SPACE or text[p] == TAB or text[p] == RETURN:
        p += 1
    return p


@njit(cache=True, nogil=True)
def _skip_line(text, p):
    while text[p] != NEWLINE:
        p += 1
    return p


@njit(cache=True, nogil=True)
def _ends_token(c):
    return c in (SPACE, TAB, NEWLINE, RETURN)


@njit(cache=True, nogil=True)
def _read_index(text, p):
    """Read a whole number without sign; -1 if there is none."""
    value, start = np.int64(0), p
    while ZERO <= text[p] <= NINE:
        value = min(value * 10 + (text[p] - ZERO), np.int64(1) << 40)
        p += 1
    return (value if p > start else np.int64(-1)), p


@njit(cache=True, nogil=True)
def _read_labels(text, p, n_known, labels, n_labels):
    """Read ``l1,l2`` or ``l1, l2``; ``NO_LABEL`` if what stands here is a feature. Give position, count and code."""
    start = p
    while True:
        value, end, ok = read_number(text, p)
        if p == start and text[end] == COLON:
            return start, n_labels, NO_LABEL
        if not ok or value != np.floor(value) or np.abs(value) > 9e15:
            return p, n_labels, BAD_LABEL
        if n_known >= 0 and not 0 <= value < n_known:
            return p, n_labels, LABEL_RANGE
        labels[n_labels] = np.int64(value)
        n_labels += 1
        p = end
        if text[p] != COMMA:
            return p, n_labels, OK if _ends_token(text[p]) or text[p] == HASH else BAD_LABEL
        p = _skip_spaces(text, p + 1)


@njit(cache=True, nogil=True)
def parse_labelled(
    text,
    base,
    n_features,
    n_known,
    svmlight,
    require_labels,
    blank_rows,
    indices,
    data,
    row_ends,
    labels,
    label_ends,
    status,
):
    """Parse lines of ``l1,l2 feature:value ...``.

    ``base`` is the first feature's number, ``n_features`` and ``n_known`` (labels) are limits (-1: none);
    ``svmlight`` allows comments and ``qid:``; blank lines are empty rows with ``blank_rows``, otherwise none.
    A line that begins with a feature is an error with ``require_labels``; without ``svmlight`` a space before it
    stands for an empty list of labels.
    """
    p, row, n, n_labels, code, failed = 0, 0, 0, 0, OK, 0
    unsorted, largest = 0, np.int64(-1)
    while p < text.size:
        failed = p
        unlabelled = not svmlight and (text[p] == SPACE or text[p] == TAB)
        p = _skip_spaces(text, p)
        if (text[p] == NEWLINE and not blank_rows) or (svmlight and text[p] == HASH):
            p = _skip_line(text, p) + 1
            continue
        if not unlabelled and text[p] != NEWLINE:
            p, n_labels, code = _read_labels(text, p, n_known, labels, n_labels)
            if code == NO_LABEL and not require_labels:
                code = OK
            if code != OK:
                failed = p
                break
        last = np.int64(-1)
        while True:
            p = _skip_spaces(text, p)
            if text[p] == NEWLINE:
                break
            failed = p
            if svmlight and text[p] == HASH:
                p = _skip_line(text, p)
                break
            if svmlight and (text[p] == SMALL_Q or text[p] == LETTER_Q):
                while not _ends_token(text[p]):
                    p += 1
                continue
            index, p = _read_index(text, p)
            if index < 0:
                code = BAD_INDEX
                break
            if text[p] != COLON:
                code = NO_COLON
                break
            value, p, ok = read_number(text, p + 1)
            if not ok or not (_ends_token(text[p]) or (svmlight and text[p] == HASH)):
                code = BAD_VALUE
                break
            index -= base
            if index < 0 or index >= 2147483647 or (n_features >= 0 and index >= n_features):
                code = INDEX_RANGE
                break
            if not np.abs(value) <= LARGEST:
                code = NOT_FINITE
                break
            indices[n] = index
            data[n] = value
            n += 1
            unsorted += index <= last
            last = index
            largest = max(largest, index)
        if code != OK:
            break
        row_ends[row] = n
        label_ends[row] = n_labels
        row += 1
        p += 1
    status[:] = (code, p, row, n, n_labels, unsorted, largest, failed)


@njit(cache=True, nogil=True)
def parse_dense(text, values, status):
    """Parse as many lines as ``values`` has rows, of as many numbers as it has columns."""
    p, code, failed = 0, OK, 0
    for row in range(values.shape[0]):
        failed = p
        for column in range(values.shape[1]):
            p = _skip_spaces(text, p)
            if text[p] == NEWLINE:
                code = BAD_COUNT
                break
            failed = p
            value, p, ok = read_number(text, p)
            if not ok or not _ends_token(text[p]):
                code = BAD_VALUE
                break
            if not np.abs(value) <= LARGEST:
                code = NOT_FINITE
                break
            values[row, column] = value
        if code != OK:
            break
        p = _skip_spaces(text, p)
        if text[p] != NEWLINE:
            code, failed = BAD_COUNT, p
            break
        p += 1
    status[:] = (code, p, values.shape[0], 0, 0, 0, 0, failed)


@njit(cache=True, nogil=True)
def parse_arff(text, column_of, indices, data, row_ends, labels, label_ends, status):
    """Parse rows ``{attribute value, ...}``; ``column_of`` gives a feature's column, or -1 - label."""
    p, row, n, n_labels, code, failed, unsorted = 0, 0, 0, 0, OK, 0, 0
    while p < text.size:
        p = _skip_spaces(text, p)
        failed = p
        if text[p] == NEWLINE or text[p] == PERCENT:
            p = _skip_line(text, p) + 1
            continue
        if text[p] != OPEN:
            code = NO_BRACE
            break
        p = _skip_spaces(text, p + 1)
        last = np.int64(-1)
        while text[p] != CLOSE:
            failed = p
            index, p = _read_index(text, p)
            if index < 0:
                code = BAD_INDEX
                break
            if index >= column_of.size:
                code = INDEX_RANGE
                break
            value, p, ok = read_number(text, _skip_spaces(text, p))
            if not ok:
                code = BAD_VALUE
                break
            if not np.abs(value) <= LARGEST:
                code = NOT_FINITE
                break
            column = column_of[index]
            if column >= 0:
                indices[n] = column
                data[n] = value
                n += 1
                unsorted += column <= last
                last = column
            elif value != 0:
                labels[n_labels] = -1 - column
                n_labels += 1
            p = _skip_spaces(text, p)
            if text[p] == COMMA:
                p = _skip_spaces(text, p + 1)
            elif text[p] != CLOSE:
                code = BAD_SEPARATOR
                break
        if code != OK:
            break
        p = _skip_spaces(text, p + 1)
        if text[p] != NEWLINE:
            code, failed = BAD_SEPARATOR, p
            break
        row_ends[row] = n
        label_ends[row] = n_labels
        row += 1
        p += 1
    status[:] = (code, p, row, n, n_labels, unsorted, column_of.size - 1, failed)
