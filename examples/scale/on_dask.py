"""Score a folder of pictures on a local Dask cluster.

python on_dask.py deploy.so PICTURES [--workers 2] [--fetch URL]
"""

from dask.distributed import Client, LocalCluster
from scoring import arguments, score, show


def main():
    """Map the pictures over the workers."""
    module, paths, workers = arguments(__doc__)
    options = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        # The graph has a few hundred bytes for the module, so it need not be scattered.
        show(client.gather(client.map(score, [module] * len(paths), paths)))


if __name__ == "__main__":
    main()
