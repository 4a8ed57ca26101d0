# SPDX-License-Identifier: Apache-2.0
"""The table of rules: what operations do with rows and with partial values. An operation that is not here is given all
rows of all replicas."""


def _names(text: str) -> list[str]:
    return text.split()


ELEMENTWISE = frozenset(
    _names(
        """
        Abs Acos Acosh Add AddN AddV2 Angle Asin Asinh Atan Atan2 Atanh BesselI0e BesselI1e BitwiseAnd BitwiseOr
        BitwiseXor Cast Ceil CheckNumerics ClipByValue Complex ComplexAbs Conj Cos Cosh Digamma Div DivNoNan Elu
        EluGrad Equal Erf Erfc Erfinv Exp Expm1 Floor FloorDiv FloorMod Greater GreaterEqual Identity Igamma Igammac
        Imag Inv InvGrad Invert IsFinite IsInf IsNan LeakyRelu LeakyReluGrad LeftShift Less LessEqual Lgamma Log
        Log1p LogicalAnd LogicalNot LogicalOr Maximum Minimum Mod Mul MulNoNan Ndtri Neg NextAfter NotEqual OnesLike
        Polygamma Pow PreventGradient Real RealDiv Reciprocal ReciprocalGrad Relu Relu6 Relu6Grad ReluGrad
        RightShift Rint Round Rsqrt RsqrtGrad Select SelectV2 Selu SeluGrad Sigmoid SigmoidGrad Sign Sin Sinh Snapshot
        Softplus SoftplusGrad Softsign SoftsignGrad Sqrt SqrtGrad Square SquaredDifference StopGradient Sub Tan Tanh
        TanhGrad TruncateDiv TruncateMod Xdivy Xlog1py Xlogy ZerosLike Zeta
        """
    )
)
"""Row by row, where what is the same on all replicas is broadcast over rows."""

WITHIN_ROWS = {
    "Softmax": (0,),
    "LogSoftmax": (0,),
    "SoftmaxCrossEntropyWithLogits": (0, 1),
    "SparseSoftmaxCrossEntropyWithLogits": (0, 1),
    "BiasAdd": (0,),
    "Conv1D": (0,),
    "Conv2D": (0,),
    "Conv3D": (0,),
    "DepthwiseConv2dNative": (0,),
    "Conv2DBackpropInput": (2,),
    "Conv3DBackpropInputV2": (2,),
    "DepthwiseConv2dNativeBackpropInput": (2,),
    "Dilation2D": (0,),
    "MaxPool": (0,),
    "MaxPoolV2": (0,),
    "MaxPool3D": (0,),
    "AvgPool": (0,),
    "AvgPool3D": (0,),
    "LRN": (0,),
    "ResizeBilinear": (0,),
    "ResizeNearestNeighbor": (0,),
    "ResizeBicubic": (0,),
    "ResizeArea": (0,),
    "AdjustContrastv2": (0,),
    "AdjustHue": (0,),
    "AdjustSaturation": (0,),
    "HSVToRGB": (0,),
    "RGBToHSV": (0,),
    "ImageProjectiveTransformV3": (0, 1),
    "DepthToSpace": (0,),
    "SpaceToDepth": (0,),
    "MatrixDiagV3": (0,),
    "MatrixDiagPartV3": (0,),
    "MatrixBandPart": (0,),
    "MatrixInverse": (0,),
    "Cholesky": (0,),
    "FFT": (0,),
    "RFFT": (0,),
    "IFFT": (0,),
    "IRFFT": (0,),
    "StringToHashBucketFast": (0,),
    "StringToNumber": (0,),
    "AsString": (0,),
    "LookupTableFindV2": (1,),
    "Bucketize": (0,),
    "ResourceGather": (1,),
    "RandomShuffle": (0,),
    "Bitcast": (0,),
}
"""Row by row: the inputs that have rows, in their first dimension. All others are the same on all replicas. The first
dimension of rows is none of those that the operation acts on (`INNER`)."""

INNER = {
    "Softmax": 1,
    "LogSoftmax": 1,
    "MatrixDiagPartV3": 2,
    "MatrixBandPart": 2,
    "MatrixInverse": 2,
    "Cholesky": 2,
    "FFT": 1,
    "IFFT": 1,
    "RFFT": 1,
    "IRFFT": 1,
    "MatrixDiagV3": 1,
    "RGBToHSV": 1,
    "HSVToRGB": 1,
}
"""How many last dimensions such an operation acts on."""

REDUCTIONS = frozenset({"Sum", "Mean", "Max", "Min", "Prod", "All", "Any", "EuclideanNorm", "ArgMax", "ArgMin"})
"""Over axes that the second input has."""

ALONG_AXIS = frozenset({"Cumsum", "Cumprod", "CumulativeLogsumexp", "ReverseV2", "Roll"})
"""Along the axis that the last input has: the shape stays."""

LINEAR = frozenset(
    _names(
        """
        Identity Neg Reshape ExpandDims Squeeze Transpose Sum Mean Snapshot StopGradient PreventGradient
        CheckNumerics StridedSlice Slice BroadcastTo Tile Pad Real Imag Conj EnsureShape ReverseV2 Cumsum
        MatrixDiagPartV3 GatherV2 GatherNd
        """
    )
)
"""Linear in the first input, where all others are the same on all replicas."""

ADDITIVE = frozenset({"Add", "AddV2", "AddN", "Sub", "ConcatV2", "Pack"})
"""Linear in all inputs together: one that is the same on all replicas becomes partial on the way."""

PRODUCTS = frozenset({"Mul", "MatMul", "BatchMatMulV2", "MulNoNan"})
"""Linear in either input."""

QUOTIENTS = frozenset({"RealDiv", "DivNoNan", "Div"})
"""Linear in the first input."""

SHAPES = {
    "Fill": 0,
    "BroadcastTo": 1,
    "RandomUniform": 0,
    "RandomUniformInt": 0,
    "RandomStandardNormal": 0,
    "TruncatedNormal": 0,
    "RandomGammaV3": 0,
    "StatelessRandomUniform": 0,
    "StatelessRandomUniformV2": 0,
    "StatelessRandomUniformInt": 0,
    "StatelessRandomUniformIntV2": 0,
    "StatelessRandomUniformFullIntV2": 0,
    "StatelessRandomNormal": 0,
    "StatelessRandomNormalV2": 0,
    "StatelessTruncatedNormal": 0,
    "StatelessTruncatedNormalV2": 0,
    "StatefulUniform": 2,
    "StatefulStandardNormalV2": 2,
    "StatefulTruncatedNormal": 2,
    "StatefulUniformInt": 2,
}
"""Make a tensor of the shape that this input has."""

DRAWS = frozenset({"RandomUniform", "RandomUniformInt", "RandomStandardNormal", "TruncatedNormal", "RandomGamma"})
"""Draw random numbers with a seed that each replica's operation has for itself."""

SIZED = frozenset(
    {
        "Reshape",
        "Tile",
        "EnsureShape",
        "Conv2DBackpropInput",
        "Conv3DBackpropInputV2",
        "DepthwiseConv2dNativeBackpropInput",
    }
)
"""Take a size of this replica's rows beside them."""

OF_SIZES = frozenset({"Shape", "ShapeN", "Size"})
LEFT_ALONE = frozenset({"Assert", "PrintV2", "StringFormat", "NoOp", "Rank", "BroadcastGradientArgs", "BroadcastArgs"})
"""Nothing is computed of what they give, or it is the same for all rows."""

OF_WHOLE_NUMBERS = frozenset(
    _names(
        """
        Add AddV2 Sub Mul FloorDiv FloorMod Minimum Maximum Neg Cast Identity StridedSlice Pack ConcatV2 ExpandDims
        Reshape Prod Sum Slice GatherV2 Squeeze StopGradient Max Min
        """
    )
)
"""Of sizes they make sizes: one is computed of this replica's rows, beside one of all rows."""
KEEPS_SIZE = frozenset({"Cast", "Identity", "StridedSlice", "Pack", "ConcatV2", "ExpandDims", "Reshape", "Squeeze"})
"""What they give begins with the size that they are given, where that is their first input."""
