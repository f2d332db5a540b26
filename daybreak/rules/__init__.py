"""What `boards.toml` and `seasons.toml` say: boards, periods, prizes."""
