from orchestrator.clidoc import TARGET, render


def test_the_reference_is_what_help_says() -> None:
    assert TARGET.read_text() == render(), "run: python -m orchestrator.clidoc"
