"""What `boards.toml` and `seasons.toml` say, and what follows from it: boards, periods, who wins what."""
