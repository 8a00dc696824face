"""Passwords in addresses are hidden, in every form of address."""

import pytest

from graphsc.core.secrets import hide_secrets, shown_address, tells_secrets

# Forms of an address, and its password as a driver may repeat it.
FORMS = {
    "postgresql://me:S3CRETpw@host.example:5432/db": "S3CRETpw",
    "postgresql://me:S3CRET%40w@host.example/db": "S3CRET@w",
    "postgresql://me:x@S3CRET@host.example/db": "S3CRET",
    "postgresql://me:x:S3CRET@host.example/db": "x:S3CRET",
    "postgresql://me:S3CRET/w@host.example/db": "S3CRET/w",
    "postgresql://me:S3CRET?w@host.example/db": "S3CRET?w",
    "postgresql://me:S3CRETpw": "S3CRETpw",
    "postgresql://me:S3CRETpw/db": "S3CRETpw",
    "postgresql://me:S3CRETpw%40host.example/db": "S3CRETpw",
    "postgresql://host.example/db?password=S3CRETpw": "S3CRETpw",
    "postgresql://host.example/db?user=me&password=S3CRETpw&sslmode=require": "S3CRETpw",
    "postgresql://host.example/db?password=S3CRET@w": "S3CRET@w",
    "postgresql://host.example/db?password=S3CRET%26w": "S3CRET&w",
    "postgresql://host.example/db?sslpassword=S3CRET+w": "S3CRET w",
    "mysql://host.example/db?passwd=S3CRETpw": "S3CRETpw",
    "mysql://host.example/db?PASSWD=S3CRETpw#x": "S3CRETpw",
    "mysql://host.example/db;pwd=S3CRETpw": "S3CRETpw",
    "mssql+pyodbc:///?odbc_connect=DRIVER%3Dx%3BPWD%3DS3CRETpw%3BUID%3Dme": "S3CRETpw",
    "postgresql:me:S3CRETpw@host.example/db": "S3CRETpw",
    "postgresql:/me:S3CRETpw@host.example/db": "S3CRETpw",
    "me:S3CRETpw@host.example/db": "S3CRETpw",
    "me:S3CRETpw": "S3CRETpw",
    "redis://:S3CRETpw@host.example/0": "S3CRETpw",
    "host=host.example user=me password=S3CRETpw": "S3CRETpw",
    "host=host.example password='S3CRET pw'": "S3CRET pw",
    "postgresql://me:S3CRETpw@[::1/db": "S3CRETpw",
}


@pytest.mark.parametrize("address", FORMS)
def test_no_form_of_address_shows_its_password(address):
    assert "S3CRET" not in shown_address(address)


@pytest.mark.parametrize("address", FORMS)
@pytest.mark.parametrize("message", ["cannot open {}", "bad dsn '{}'", "({!r},)"])
def test_no_form_of_address_survives_in_a_message(address, message):
    assert "S3CRET" not in hide_secrets(message.format(address), address)


@pytest.mark.parametrize(("address", "password"), FORMS.items())
def test_a_password_alone_is_hidden_when_its_address_is_known(address, password):
    """As in `invalid literal for int() with base 10: 'S3CRETpw'`."""
    assert hide_secrets(f"bad value {password!r}", address) == "bad value '***'"


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://me:S3CRET@host.example:5432/db", "postgresql://host.example:5432/db"),
        ("postgresql://me:12345/db", "postgresql://me/db"),
        ("https://127.0.0.1:9/simple", "https://127.0.0.1:9/simple"),
        ("https://host.example/a/b?token=S3CRET", "https://host.example/a/b"),
        ("sqlite:///folder/sweep.db", "sqlite:///folder/sweep.db"),
        ("folder/x.journal", "folder/x.journal"),
        ("mysql://me@[::1]:3306/db", "mysql://[::1]:3306/db"),
        ("nosuch://x/y", "nosuch://x/y"),
    ],
)
def test_scheme_host_and_path_are_shown(address, shown):
    assert shown_address(address) == shown


@pytest.mark.parametrize(
    "text", ["no such data set 'mutga' (looked in /a:/b)", "C[C@H](N)O is no molecule", "mail me@host"]
)
def test_other_text_stays_as_it_is(text):
    assert hide_secrets(text) == text


def test_a_password_in_the_cause_of_an_error_is_found():
    error = RuntimeError("cannot connect")
    error.__cause__ = ValueError("invalid literal for int() with base 10: 'S3CRETpw'")
    assert tells_secrets(error, "postgresql://me:S3CRETpw/db")
    assert not tells_secrets(error, "postgresql://me:other/db")
