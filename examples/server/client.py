"""Send a picture to the server, and print the classes: needs Pillow.

python client.py PICTURE [URL]
"""

import json
import sys
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from PIL import Image

SIDE = 224


def main(picture, url="http://127.0.0.1:8080"):
    """Classify one picture."""
    headers = {"Content-Type": "application/octet-stream"}
    try:
        with urlopen(Request(f"{url}/classify", pixels(picture), headers)) as response:
            result = json.load(response)
    except HTTPError as error:
        sys.exit(f"{error.code}: {error.read().decode().strip()}")
    for answer in result["top"]:
        print(f"class {answer['class']:3}  score {answer['score']:.3f}")
    print(f"{result['milliseconds']:.1f} ms")


def pixels(path):
    """Return the middle of a picture, (224, 224, 3) bytes."""
    with Image.open(path) as image:
        side = min(image.size)
        left, upper = ((extent - side) // 2 for extent in image.size)
        box = (left, upper, left + side, upper + side)
        return image.convert("RGB").resize((SIDE, SIDE), box=box).tobytes()


if __name__ == "__main__":
    main(*sys.argv[1:])
