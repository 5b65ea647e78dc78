#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/data/pictures: small image files of every kind, and Pillow's (12.0) views of them, in views.txt (file,
box, size, cut, flip) and expected.gz (the RGB pixels, one view after the other). Run by hand with Pillow and numpy
installed; the test reads only what is committed. With the word "others" it adds only the kinds of others()."""
import gzip
import os
import sys

import numpy
from PIL import Image, ImageOps

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pictures")
BILINEAR = Image.Resampling.BILINEAR
random = numpy.random.default_rng(7)


def photo(width, height):
    """Smooth shades, edges and some grain, as in a photograph."""
    y, x = numpy.mgrid[0:height, 0:width] / max(width, height)
    shades = [128 + 100 * numpy.sin(5 * x + 3 * y), 128 + 90 * numpy.cos(4 * y - x), 128 + 80 * numpy.sin(9 * x * y)]
    pixels = numpy.stack(shades, -1)
    pixels[(x - 0.4) ** 2 + (y - 0.3) ** 2 < 0.03] += [60, -40, 20]
    pixels[:, (numpy.arange(width) // 19) % 5 == 0] -= 35
    return Image.fromarray(numpy.clip(pixels + random.normal(0, 3, pixels.shape), 0, 255).astype(numpy.uint8))


def save(name, image, **options):
    image.save(os.path.join(HERE, name), **options)


def make_files():
    noise = Image.fromarray(random.integers(0, 256, (61, 97, 3), dtype=numpy.uint8))
    save("noise.png", noise)
    picture = photo(213, 161)
    save("photo.png", picture)
    save("photo.jpg", picture, quality=92)
    save("plain.jpg", picture, quality=90, subsampling=0)
    save("progressive.jpg", picture, quality=80, progressive=True)
    save("grey.jpg", picture.convert("L"), quality=90)
    save("cmyk.jpg", picture.convert("CMYK"), quality=90)
    small = picture.resize((72, 50), BILINEAR)
    for orientation in range(2, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        save(f"turned{orientation}.jpg", small, quality=92, exif=exif)
    save("grey.png", small.convert("L"))
    save("palette.png", small.quantize(16))
    save("bits.png", small.convert("1"))
    alpha = small.convert("RGBA")
    alpha.putalpha(100)
    save("alpha.png", alpha)
    deep = numpy.asarray(small.convert("L"), dtype=numpy.uint16) * 257
    Image.fromarray(deep).save(os.path.join(HERE, "deep.png"))
    save("large.jpg", photo(1200, 900), quality=60)


def shown(name):
    image = ImageOps.exif_transpose(Image.open(os.path.join(HERE, name)))
    if image.mode.startswith("I"):
        return Image.fromarray((numpy.asarray(image) // 257).astype(numpy.uint8)).convert("RGB")
    return image.convert("RGB")


def views():
    """Yields name, box, width, height, cut, flip."""
    for name in ("noise.png", "photo.png", "photo.jpg", "plain.jpg"):
        width, height = shown(name).size
        for ratio in (0.3, 0.7, 1, 1.6, 4):
            part = min(0.15 * (1 + ratio), 0.6)
            w, h = int(width * part), int(height * part)
            yield name, (int(width * 0.2), int(height * 0.3), w, h), int(w / ratio) | 1, int(h / ratio) | 1, 1, 0
        yield name, (7, 5, w, h), 33, 29, 1, 1
        yield name, (0, 0, width, height), 40, 40, 1, 0
        yield name, (10.25, 6.5, w + 0.5, h + 0.125), 31, 27, 0, 0
    for name in ["progressive.jpg", "grey.jpg", "cmyk.jpg", "grey.png", "palette.png", "bits.png", "alpha.png", "deep.png"] \
            + [f"turned{i}.jpg" for i in range(2, 9)]:
        width, height = shown(name).size
        yield name, (width // 5, height // 7, width // 2, height // 2), 24, 20, 1, 0
        yield name, (width // 5, height // 7, width // 2, height // 2), 24, 20, 1, 1


def others():
    """WebP, TIFF, BMP, PNM, and PNG with EXIF; yields their views."""
    small = photo(72, 50)
    exif = Image.Exif()
    exif[0x0112] = 6
    save("turned.png", small, exif=exif)
    save("lossless.webp", small, lossless=True)
    save("lossy.webp", small, quality=90)
    save("turned.webp", small, lossless=True, exif=exif)
    save("moving.webp", small, save_all=True, append_images=[small.rotate(90)], lossless=True)
    palette = small.quantize(64)
    save("plain.tif", small)
    save("packed.tif", small, compression="tiff_lzw")
    save("turned.tif", small, compression="tiff_deflate", exif=exif)
    save("grey.tif", small.convert("L"))
    save("palette.tif", palette)
    save("color.bmp", small)
    save("palette.bmp", palette)
    save("bits.bmp", small.convert("1"))
    save("alpha.bmp", small.convert("RGBA"))
    save("color.ppm", small)
    save("grey.pgm", small.convert("L"))
    for name in ("turned.png", "lossless.webp", "lossy.webp", "turned.webp", "moving.webp", "plain.tif", "packed.tif",
                 "turned.tif", "grey.tif", "palette.tif", "color.bmp", "palette.bmp", "bits.bmp", "alpha.bmp", "color.ppm", "grey.pgm"):
        width, height = shown(name).size
        yield name, (0, 0, width, height), width, height, 1, 0
        yield name, (width // 5, height // 7, width // 2, height // 2), 24, 20, 1, 1


def expected(name, box, width, height, cut, flip):
    x, y, w, h = box
    image = shown(name)
    if cut:
        image = image.crop((x, y, x + w, y + h)).resize((width, height), BILINEAR)
    else:
        image = image.resize((width, height), BILINEAR, box=(x, y, x + w, y + h))
    return (ImageOps.mirror(image) if flip else image).tobytes()


def write_views(of, mode):
    with open(os.path.join(HERE, "views.txt"), mode, encoding="ascii") as index, \
            open(os.path.join(HERE, "expected.gz"), mode + "b") as file, gzip.GzipFile("", "wb", 9, file, 0) as pixels:
        for name, box, width, height, cut, flip in of:
            index.write(f"{name} {box[0]} {box[1]} {box[2]} {box[3]} {width} {height} {cut} {flip}\n")
            pixels.write(expected(name, box, width, height, cut, flip))


def main():
    os.makedirs(HERE, exist_ok=True)
    if sys.argv[1:] != ["others"]:
        make_files()
        write_views(views(), "w")
    write_views(others(), "a")


main()
