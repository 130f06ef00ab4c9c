"""The label with most votes; of labels with as many, their mean: of A and B a tie."""

from btdagg.methods import MajorityVote

NAME, LEAST = "majority vote", 0


def decide(seen, new):
    if len(new.scale.points) != len(new.label_scale.points):
        return None
    return MajorityVote(scale=new.scale, label_scale=new.label_scale).decide(new.counts)
