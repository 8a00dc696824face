from graphsc.paper.analyses import ideas_table

LOOKS = [
    {"what": "readout", "data": "nci1", "inner": 50.0},  # a look of another kind
    {"what": "idea: plus", "data": "mutag", "seed": 1000, "inner": 80.0, "few": 60.0},
    {"what": "idea: plus", "data": "mutag", "seed": 1001, "inner": 90.0, "few": 70.0},
    {"what": "idea: wide", "data": "mutag", "seed": 1000, "inner": 81.0, "few": 61.0},
    {"what": "idea: plus", "data": "nci1", "seed": 1000, "inner": 77.0, "few": 66.0},
]


def test_ideas_stand_by_data_set_and_labels_as_means_over_seeds():
    lines = ideas_table(LOOKS).splitlines()
    assert lines[0] == "| idea | MUTAG, all labels | MUTAG, 5 % | NCI1, all labels | NCI1, 5 % |"
    assert lines[2:4] == ["| plus | 85.00 | 65.00 | 77.00 | 66.00 |", "| wide | 81.00 | 61.00 |  |  |"]
    assert lines[5].startswith("4 looks")
    assert "(at most MUTAG 2, NCI1 1)" in lines[5]
