"""Score a folder of pictures in the workers of PyTorch's DataLoader.

python on_loader.py deploy.so PICTURES [--workers 2] [--fetch URL]
"""

from scoring import arguments, score, show
from torch.utils.data import DataLoader, Dataset


class Scores(Dataset):
    """The score of each picture."""

    def __init__(self, module, paths):
        self.module = module
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return score(self.module, self.paths[index])


def main():
    """Iterate over the pictures in their order; each worker is a process."""
    module, paths, workers = arguments(__doc__)
    scores = Scores(module, paths)
    show(DataLoader(scores, None, num_workers=workers, multiprocessing_context="spawn"))


if __name__ == "__main__":
    main()
