"""From the lake to Redis: generations, lists of items, boards."""
