"""Score a folder of pictures in processes of the standard library.

python on_pool.py deploy.so PICTURES [--workers 2] [--fetch URL]
"""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

from scoring import arguments, score, show


def main():
    """Map the pictures over the workers; "fork" and "forkserver" work the same way."""
    module, paths, workers = arguments(__doc__)
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        show(pool.map(score, [module] * len(paths), paths))


if __name__ == "__main__":
    main()
