import pytest

from api.errors import ApiError
from api.limits import Generations, RateLimit


def test_a_key_may_spend_a_minutes_worth_at_once_and_then_waits() -> None:
    rate = RateLimit(per_minute=3)
    for _ in range(3):
        rate.spend("a", now=100.0)
    with pytest.raises(ApiError) as refused:
        rate.spend("a", now=100.0)
    assert refused.value.status == 429
    assert refused.value.retry_after == pytest.approx(20)
    rate.spend("a", now=120.1)
    with pytest.raises(ApiError):
        rate.spend("a", now=120.2)


def test_keys_do_not_share_a_rate() -> None:
    rate = RateLimit(per_minute=1)
    rate.spend("a", now=0.0)
    rate.spend("b", now=0.0)
    with pytest.raises(ApiError):
        rate.spend("a", now=0.0)


def test_an_idle_key_saves_up_no_more_than_a_minutes_worth() -> None:
    rate = RateLimit(per_minute=2)
    rate.spend("a", now=0.0)
    for _ in range(2):
        rate.spend("a", now=10_000.0)
    with pytest.raises(ApiError):
        rate.spend("a", now=10_000.0)


def test_a_rate_of_zero_allows_everything() -> None:
    rate = RateLimit(per_minute=0)
    for _ in range(1000):
        rate.spend("a", now=0.0)


def test_an_answer_too_many_is_refused_at_once_and_a_place_comes_back_after_a_failure() -> None:
    places = Generations(most=1)

    def fail() -> None:
        with places.one():
            raise ValueError("broken")

    with places.one(), pytest.raises(ApiError) as refused:
        fail()
    assert (refused.value.status, refused.value.retry_after) == (429, 1)
    with pytest.raises(ValueError, match="broken"):
        fail()
    with places.one():
        pass
