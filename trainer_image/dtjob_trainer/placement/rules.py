# SPDX-License-Identifier: Apache-2.0
"""The table of rules: what operations do with rows and with partial values. An operation that is not here is given all
rows of all replicas."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


ELEMENTWISE = _names(
    """
    Abs Acos Acosh Add AddN AddV2 Angle Asin Asinh Atan Atan2 Atanh BesselI0e BesselI1e BitwiseAnd BitwiseOr BitwiseXor
    Cast Ceil CheckNumerics ClipByValue Complex ComplexAbs Conj Cos Cosh Digamma Div DivNoNan Elu EluGrad Equal Erf Erfc
    Erfinv Exp Expm1 Floor FloorDiv FloorMod Greater GreaterEqual Identity Igamma Igammac Imag Inv InvGrad Invert
    IsFinite IsInf IsNan LeakyRelu LeakyReluGrad LeftShift Less LessEqual Lgamma Log Log1p LogicalAnd LogicalNot
    LogicalOr Maximum Minimum Mod Mul MulNoNan Ndtri Neg NextAfter NotEqual OnesLike Polygamma Pow PreventGradient Real
    RealDiv Reciprocal ReciprocalGrad Relu Relu6 Relu6Grad ReluGrad RightShift Rint Round Rsqrt RsqrtGrad Select
    SelectV2 Selu SeluGrad Sigmoid SigmoidGrad Sign Sin Sinh Snapshot Softplus SoftplusGrad Softsign SoftsignGrad Sqrt
    SqrtGrad Square SquaredDifference StopGradient Sub Tan Tanh TanhGrad TruncateDiv TruncateMod Xdivy Xlog1py Xlogy
    ZerosLike Zeta
    """
)
"""Row by row, where what is the same on all replicas is broadcast over rows."""

_TRANSPOSED_CONVOLUTIONS = _names("Conv2DBackpropInput Conv3DBackpropInputV2 DepthwiseConv2dNativeBackpropInput")
CROSS_ENTROPIES = _names("SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits")
_FIRST_HAS_ROWS = _names(
    """
    Softmax LogSoftmax BiasAdd Conv1D Conv2D Conv3D DepthwiseConv2dNative Dilation2D MaxPool MaxPoolV2 MaxPool3D AvgPool
    AvgPool3D LRN ResizeBilinear ResizeNearestNeighbor ResizeBicubic ResizeArea AdjustContrastv2 AdjustHue
    AdjustSaturation HSVToRGB RGBToHSV DepthToSpace SpaceToDepth MatrixDiagV3 MatrixDiagPartV3 MatrixBandPart
    MatrixInverse Cholesky FFT RFFT IFFT IRFFT StringToHashBucketFast StringToNumber AsString Bucketize RandomShuffle
    Bitcast
    """
)
WITHIN_ROWS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(_FIRST_HAS_ROWS, (0,)),
    **dict.fromkeys(CROSS_ENTROPIES | {"ImageProjectiveTransformV3"}, (0, 1)),
    **dict.fromkeys(("LookupTableFindV2", "ResourceGather"), (1,)),
    **dict.fromkeys(_TRANSPOSED_CONVOLUTIONS, (2,)),
}
"""Row by row: the inputs that have rows, in their first dimension. All others are the same on all replicas. The first
dimension of rows is none of those that the operation acts on (`INNER`)."""

INNER = {
    **dict.fromkeys(_names("Softmax LogSoftmax FFT IFFT RFFT IRFFT MatrixDiagV3 RGBToHSV HSVToRGB"), 1),
    **dict.fromkeys(_names("MatrixDiagPartV3 MatrixBandPart MatrixInverse Cholesky"), 2),
}
"""How many last dimensions such an operation acts on."""

REDUCTIONS = _names("Sum Mean Max Min Prod All Any EuclideanNorm ArgMax ArgMin")
"""Over axes that the second input has."""

LINEAR = _names(
    """
    Identity Neg Reshape ExpandDims Squeeze Transpose Sum Mean Snapshot StopGradient PreventGradient CheckNumerics
    StridedSlice Slice BroadcastTo Tile Pad Real Imag Conj EnsureShape ReverseV2 Cumsum MatrixDiagPartV3 GatherV2
    GatherNd
    """
)
"""Linear in the first input, where all others are the same on all replicas."""

ADDITIVE = _names("Add AddV2 AddN Sub ConcatV2 Pack")
"""Linear in all inputs together: one that is the same on all replicas becomes partial on the way."""

PRODUCTS = _names("Mul MatMul BatchMatMulV2 MulNoNan")
"""Linear in either input."""

QUOTIENTS = _names("RealDiv DivNoNan Div")
"""Linear in the first input."""

DIVIDE = QUOTIENTS | {"Mean"}
"""Of whole numbers, they round."""

DRAWN_BY_SEED = _names(
    """
    StatelessRandomUniform StatelessRandomUniformV2 StatelessRandomUniformInt StatelessRandomUniformIntV2
    StatelessRandomUniformFullIntV2 StatelessRandomNormal StatelessRandomNormalV2 StatelessTruncatedNormal
    StatelessTruncatedNormalV2
    """
)
"""Their second input is a seed, or the key that is made of a seed."""
DRAWN = DRAWN_BY_SEED | _names("RandomUniform RandomUniformInt RandomStandardNormal TruncatedNormal RandomGammaV3")
_FILLS_BY_GENERATOR = _names("StatefulUniform StatefulStandardNormalV2 StatefulTruncatedNormal StatefulUniformInt")
SHAPES = {"Fill": 0} | dict.fromkeys(DRAWN, 0) | {"BroadcastTo": 1} | dict.fromkeys(_FILLS_BY_GENERATOR, 2)
"""Make a tensor of the shape that this input has."""

SIZED = _TRANSPOSED_CONVOLUTIONS | _names("Reshape Tile EnsureShape")
"""Take a size of this replica's rows beside them."""

OF_SIZES = _names("Shape ShapeN Size")
LEFT_ALONE = _names("Assert PrintV2 StringFormat NoOp Rank BroadcastGradientArgs")
"""Nothing is computed of what they give, or it is the same for all rows."""

KEEPS_SIZE = _names("Cast Identity ExpandDims Reshape Squeeze StopGradient")
"""What they give is the size that they are given, or begins with it."""
JOINS = _names("Pack ConcatV2")
"""Make a vector of others' entries, as a shape of its dimensions."""
TAKES = _names("StridedSlice Slice GatherV2")
"""Take entries of a vector, as dimensions of a shape."""
