from xsoftmax.estimators.multi_label import MultiLabelClassifier as MultiLabelClassifier
from xsoftmax.estimators.softmax import SoftmaxClassifier as SoftmaxClassifier

__version__: str
