"""Jobs, trainings and large models' texts on a Ray cluster: imported only where GPTVIZ_RAY is set.

cluster    the backend of the queue, and a model whose texts the cluster reads
driver     the process beside the server that speaks to Ray
passes     the cluster's side of reading texts
training   a training of the page on a machine of the cluster
"""
