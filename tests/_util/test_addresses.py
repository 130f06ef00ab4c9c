"""Passwords do not get into what is shown or written."""

import pytest

from btdagg._util.addresses import shown_address, without_credentials
from btdagg.judge.store.database import StoreError, url_of

SECRET = "hunter2"
FORMS = {
    "postgresql://me:hunter2@host/votes": "postgresql://me:***@host/votes",
    "postgresql+psycopg://me:hunter2@[::1]:5432/votes": "postgresql+psycopg://me:***@[::1]:5432/votes",
    "postgresql://me:a/hunter2@host/votes": "postgresql://me:***@host/votes",
    "postgresql://me:a?hunter2@host/votes": "postgresql://me:***@host/votes",
    "postgresql://me:a@hunter2@host/votes": "postgresql://me:***@host/votes",
    "postgresql://me:a:hunter2@host/votes": "postgresql://me:***@host/votes",
    "postgresql://me:hunter2%40@host/votes": "postgresql://me:***@host/votes",
    "postgresql://host/votes?password=hunter2": "postgresql://host/votes?password=***",
    "postgresql:///votes?user=me&password=hunter2&host=/run/db": (
        "postgresql:///votes?user=me&password=***&host=/run/db"
    ),
    "postgresql://host/votes?sslmode=require&sslpassword=hunter2": (
        "postgresql://host/votes?sslmode=require&sslpassword=***"
    ),
    "postgresql://host/votes?password=a&password=hunter2": (
        "postgresql://host/votes?password=***&password=***"
    ),
    "postgresql://a/me:hunter2@host/votes": "postgresql://***@host/votes",
    "postgresql://me:hunter2@host:port/votes?pass=hunter2": "postgresql://me:***@host:port/votes?pass=***",
    "https://me:hunter2@host/v1?api_key=hunter2": "https://me:***@host/v1?api_key=***",
    "postgresql://host/votes?options=-c%20x.password%3Dhunter2": (
        "postgresql://host/votes?options=-c%20x.password%3D***"
    ),
    "postgresql://host/votes?x=1;password=hunter2": "postgresql://host/votes?x=1;password=***",
    "--store=postgresql://me:hunter2@host/votes": "--store=postgresql://me:***@host/votes",
}


@pytest.mark.parametrize("address", FORMS)
def test_every_form_of_a_secret_is_hidden(address):
    assert shown_address(address) == FORMS[address]
    assert SECRET not in without_credentials(address)


@pytest.mark.parametrize(
    "text",
    [
        "host=localhost user=me password=hunter2 dbname=votes",
        "host=localhost password = 'a hunter2'",
        "--store=PASSWORD=hunter2",
        "postgresql://host/votes;password=hunter2",
    ],
)
def test_a_password_among_settings_is_hidden(text):
    shown = shown_address(text)
    assert SECRET not in shown
    assert "***" in shown


@pytest.mark.parametrize(
    "place", ["host=localhost password=hunter2", "password = 'hunter2'", "postgresql:/me:hunter2@h"]
)
def test_settings_of_a_database_become_no_file_with_the_password_in_its_name(place):
    with pytest.raises(StoreError) as refused:
        url_of(place)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "votes.db",
        "--max-tokens=100",
        "a sentence with me@example.org",
        "postgresql://me@host/votes",
        "sqlite:////data/me@home/votes.db",
        "http://localhost:8000/v1",
    ],
)
def test_what_is_no_secret_stays(text):
    assert shown_address(text) == text
