"""The demo makes two real pictures."""

from matplotlib.image import imread

from graphsc.cli.demo import run_demo


def test_demo_draws_graphs_and_a_map(tmp_path):
    collection, pictures = run_demo(tmp_path / "demo")
    assert len(collection) >= 100
    assert len(pictures) == 2
    for path in pictures.values():
        picture = imread(path)
        assert min(picture.shape[:2]) > 400
        assert picture[..., :3].std() > 0.01  # not a blank page
