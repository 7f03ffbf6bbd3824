"""Secrets in addresses are not shown, wherever they stand."""

import pytest

from xsoftmax.internal.addresses import all_without_secrets, text_without_secrets, without_secrets


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://ann:secret@host:5000/x", "https://…@host:5000/x"),
        ("https://ann:se@cret@host/x", "https://…@host/x"),
        ("https://ann:se/cr@et@host/x", "https://…@host/x"),
        ("https://secret@host", "https://…@host"),
        ("https://host/x?token=secret", "https://host/x?…"),
        ("https://host/x#secret", "https://host/x#…"),
        ("https://host/;tok=secret", "https://host/;…"),
        ("https://host/x;secret?a=1", "https://host/x;…"),
        ("https://host/x;", "https://host/x;"),
        ("file:///data/a;b", "file:///data/a;b"),
        ("https://ann:secret@host/x?password=secret&b=1", "https://…@host/x?…"),
        ("https://ann:se?cr@et@host/x", "https://…"),
        ("https://host/x?token=sec@ret", "https://…"),
        ("postgresql+psycopg2://ann:secret@host/db", "postgresql+psycopg2://…@host/db"),
        ("postgresql://host/db?user=ann&password=secret", "postgresql://host/db?…"),
        ("ann:secret@host", "ann:…@host"),
        ("https://ann:sec ret\nsecret@host", "https://…@host"),
        ("http://[::1", "http://[::1"),
        ("http://ann:secret@[::1", "http://…@[::1"),
        ("sqlite:////home/ann@work/mlflow.db", "sqlite:////home/ann@work/mlflow.db"),
        ("sqlite:///mlflow.db?password=secret", "sqlite:///mlflow.db?…"),
        ("file:///data/ann@work/x", "file:///data/ann@work/x"),
        ("databricks", "databricks"),
        ("", ""),
    ],
)
def test_an_address_is_shown_without_secrets(address, shown):
    assert without_secrets(address) == shown
    assert without_secrets(shown) == shown


@pytest.mark.parametrize(
    ("text", "address", "shown"),
    [
        ("cannot reach 'https://ann:secret@host/x'", "", "cannot reach 'https://…@host/x'"),
        ("nonnumeric port: 'secret@host'", "https://ann:secret@host/x", "nonnumeric port: '…@host'"),
        ("cannot resolve 's3'", "http://ann:s3/cr3t@host", "cannot resolve '…'"),
        ("no host cret", "https://ann:se/Cret@et@host", "no host …"),
        ("Max retries with url: /x?token=secret", "http://host/x?token=secret", "Max retries with url: /x?…"),
        ("no user 'an n'", "https://an%20n:secret@host", "no user '…'"),
        ("why? because", "https://host/x?a=1", "why? because"),
    ],
)
def test_a_text_that_quotes_an_address_is_shown_without_its_secrets(text, address, shown):
    assert text_without_secrets(text, *([address] if address else [])) == shown


def test_nested_values_are_shown_without_secrets():
    nested = {"mirror": "https://ann:sec ret@host", "n": 1, "urls": ("https://host/x?token=secret", "/data?")}
    shown = {"mirror": "https://…@host", "n": 1, "urls": ["https://host/x?…", "/data?"]}
    assert all_without_secrets(nested) == shown
