"""Score a folder of pictures with a pool of Ray actors.

python on_ray.py deploy.so PICTURES [--workers 2] [--fetch URL]
"""

import ray
from ray.util import ActorPool
from scoring import arguments, score, show


@ray.remote(max_restarts=3, max_task_retries=3)
class Scorer:
    """A process with the module; Ray restarts it if it is killed, and repeats the call."""

    def __init__(self, module):
        self.module = module

    def score(self, path):
        """Score one picture."""
        return score(self.module, path)


def main():
    """Give each idle actor the next picture."""
    module, paths, workers = arguments(__doc__)
    ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False)
    pool = ActorPool([Scorer.remote(module) for _ in range(workers)])
    show(pool.map(lambda actor, path: actor.score.remote(path), paths))
    ray.shutdown()


if __name__ == "__main__":
    main()
