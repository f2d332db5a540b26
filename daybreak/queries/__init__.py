"""One question, answered from Redis or else from the lake."""
