"""Benchmarks: cases and peers once, rows of one shape.

A row has the keys `case`, `dtype`, `contender`, `device`, `threads`, `median_s`, `spread_s`, `gflops`,
`error`, `note` and `versus`; the last maps a peer to its time divided by ours in the same process, so
that above 1 is faster. Times never gate a test.
"""
