"""The map from ops to modules of this package: a lookup imports one module only.

`tests/ops/test_families.py` compares it with the modules' `SPECS`.
"""

from __future__ import annotations

FAMILIES: dict[str, str] = {
    "activation": (
        "Celu Elu Gelu HardSigmoid HardSwish LeakyRelu Mish PRelu Relu Selu Shrink Sigmoid Softplus Softsign Swish "
        "ThresholdedRelu SwiGLU com.microsoft.BiasAdd com.microsoft.BiasGelu com.microsoft.BiasSplitGelu "
        "com.microsoft.FastGelu com.microsoft.GatedAdd com.microsoft.Gelu com.microsoft.QuickGelu "
        "com.microsoft.ScaledSiLU"
    ),
    "attention": "Attention",
    "block_quantized": "com.microsoft.MatMulNBits com.microsoft.GatherBlockQuantized",
    "bound_movement": "igniter.bound.Expand igniter.bound.Reshape",
    "bound_reduction": (
        "igniter.bound.ReduceLogSumExp igniter.bound.ReduceMean igniter.bound.ReduceL1 igniter.bound.ReduceL2 "
        "igniter.bound.ReduceLogSum igniter.bound.ReduceMax igniter.bound.ReduceMin igniter.bound.ReduceProd "
        "igniter.bound.ReduceSum igniter.bound.ReduceSumSquare"
    ),
    "bound_resize": "igniter.bound.Resize",
    "bound_windows": "igniter.bound.Col2Im igniter.bound.Pad igniter.bound.Range igniter.bound.Slice",
    "contraction": (
        "Einsum Gemm MatMul MatMulInteger com.microsoft.FusedGemm com.microsoft.FusedMatMul "
        "com.microsoft.TransposeMatMul"
    ),
    "contrib_attention": "com.microsoft.Attention com.microsoft.MultiHeadAttention",
    "contrib_counts": (
        "com.microsoft.DynamicQuantizeMatMul com.microsoft.GemmFloat8 com.microsoft.MatMulInteger16 "
        "com.microsoft.MatMulIntegerToFloat com.microsoft.FusedMatMulActivation com.microsoft.GemmFastGelu "
        "com.microsoft.QGemm com.microsoft.QOrderedMatMul com.microsoft.RouterGateUpProj "
        "com.microsoft.SparseToDenseMatMul com.microsoft.MatMulBlockQuantizedFp4Weight "
        "com.microsoft.MatMulBlockQuantizedFp8Weight com.microsoft.MatMulBnb4 com.microsoft.MatMulFpQ4 "
        "com.microsoft.MatMulPacked com.microsoft.MatMulNBitsMlp com.microsoft.MatMulNBitsQkv "
        "com.microsoft.MatMulNBitsQLoRA com.microsoft.MoE com.microsoft.QMoE com.microsoft.MoEPacked "
        "com.microsoft.HyperConnectionLowRankMix com.microsoft.NhwcConv com.microsoft.NhwcFusedConv "
        "com.microsoft.QLinearConv com.microsoft.ConvTransposeWithDynamicPads "
        "com.microsoft.VarlenCausalConvWithState com.microsoft.WordConvEmbedding com.microsoft.DecoderAttention "
        "com.microsoft.DecoderMaskedMultiHeadAttention com.microsoft.DecoderMaskedSelfAttention "
        "com.microsoft.QAttention com.microsoft.QOrderedAttention com.microsoft.PackedAttention "
        "com.microsoft.PackedMultiHeadAttention com.microsoft.LongformerAttention "
        "com.microsoft.QOrderedLongformerAttention com.microsoft.SparseAttention com.microsoft.PagedAttention "
        "com.microsoft.DynamicSparseAttention com.microsoft.SparsePagedAttention "
        "com.microsoft.SparseAttentionIndexer com.microsoft.PackedSparseAttentionIndexer "
        "com.microsoft.GatedRelativePositionBias com.microsoft.AttnLSTM com.microsoft.GatedDeltaNet "
        "com.microsoft.Mamba2Verify com.microsoft.BiasDropout com.microsoft.BitmaskBiasDropout "
        "com.microsoft.BitmaskDropout com.microsoft.BiasSoftmax com.microsoft.ComplexMul "
        "com.microsoft.ComplexMulConj com.microsoft.GemmaRotaryEmbedding com.microsoft.IsAllFinite "
        "com.microsoft.MoEGroupRouter com.microsoft.MulInteger com.microsoft.MurmurHash3 "
        "com.microsoft.QOrderedGelu com.microsoft.RMSNormRotary com.microsoft.RelativePositionBias "
        "com.microsoft.SampleOp com.microsoft.SwiGLU com.microsoft.QuantizeBFP com.microsoft.QuantizeWithOrder "
        "com.microsoft.DequantizeBFP com.microsoft.DequantizeWithOrder com.microsoft.GatherPacked "
        "com.microsoft.QLinearAdd com.microsoft.QLinearMul com.microsoft.QLinearConcat "
        "com.microsoft.QLinearLeakyRelu com.microsoft.QLinearSigmoid com.microsoft.QLinearSoftmax "
        "com.microsoft.QLinearWhere com.microsoft.QEmbedLayerNormalization "
        "com.microsoft.QOrderedLayerNormalization com.microsoft.MaxpoolWithMask com.microsoft.QLinearAveragePool "
        "com.microsoft.QLinearGlobalAveragePool com.microsoft.QLinearReduceMean com.microsoft.ReduceSumInteger "
        "com.microsoft.DynamicTimeWarping com.microsoft.Unique com.microsoft.Rfft com.microsoft.Irfft "
        "com.microsoft.NGramHashMapping com.microsoft.VarlenNGramHashMapping com.microsoft.BifurcationDetector "
        "com.microsoft.NGramRepeatBlock com.microsoft.PackedSparseAttentionIndexerMerge "
        "com.microsoft.ConvStateReplay com.microsoft.GatedDeltaNetStateReplay com.microsoft.Range "
        "com.microsoft.RemovePadding com.microsoft.RestorePadding com.microsoft.SpeculativePrefixCommit "
        "com.microsoft.TorchEmbedding com.microsoft.Tokenizer com.microsoft.BeamSearch com.microsoft.GreedySearch "
        "com.microsoft.Sampling com.microsoft.WhisperBeamSearch com.microsoft.EPContext com.microsoft.Snpe"
    ),
    "contrib_norms": (
        "com.microsoft.BranchwiseRMSNorm com.microsoft.EngramGate com.microsoft.GatedRMSNorm "
        "com.microsoft.GroupNorm com.microsoft.HyperConnectionPostMix com.microsoft.HyperConnectionPreMix "
        "com.microsoft.LinearAttentionGate com.microsoft.SkipGroupNorm"
    ),
    "convolution": "Conv com.microsoft.FusedConv CausalConvWithState com.microsoft.CausalConvWithState",
    "elementwise": (
        "Abs Add Ceil Div Floor Max Mean Min Mod Mul Neg Pow Reciprocal Round Sign Sqrt Sub Sum Cos Cosh Erf Exp "
        "Log Sin Sinh Tan Tanh Acos Acosh Asin Asinh Atan Atanh And Equal Greater GreaterOrEqual IsInf IsNaN Less "
        "LessOrEqual Not Or Xor BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor BitCast Cast CastLike Clip "
        "Dropout Identity Where"
    ),
    "grouped_attention": "com.microsoft.GroupQueryAttention",
    "indexing": "Gather GatherElements GatherND com.microsoft.GatherND OneHot Trilu com.microsoft.Trilu",
    "integer_convolution": "ConvInteger",
    "legacy": "Affine Crop ImageScaler ParametricSoftplus Scale ScaledTanh",
    "linear_algebra": "Det com.microsoft.CDist com.microsoft.Inverse",
    "linear_attention": "LinearAttention com.microsoft.LinearAttention",
    "loss": "NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss",
    "ml_features": (
        "ai.onnx.ml.ArrayFeatureExtractor ai.onnx.ml.Binarizer ai.onnx.ml.FeatureVectorizer ai.onnx.ml.Imputer "
        "ai.onnx.ml.LabelEncoder ai.onnx.ml.Normalizer ai.onnx.ml.OneHotEncoder ai.onnx.ml.Scaler"
    ),
    "ml_linear": "ai.onnx.ml.LinearClassifier ai.onnx.ml.LinearRegressor ai.onnx.ml.SVMRegressor",
    "ml_svm": "ai.onnx.ml.SVMClassifier",
    "movement": (
        "DepthToSpace Expand Flatten Reshape SpaceToDepth Squeeze Tile Transpose Unsqueeze com.microsoft.ExpandDims"
    ),
    "node_counts": (
        "If Loop Scan SequenceMap Constant Compress ConcatFromSequence Optional OptionalGetElement "
        "OptionalHasElement SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength "
        "SplitToSequence ai.onnx.ml.CastMap ai.onnx.ml.CategoryMapper ai.onnx.ml.DictVectorizer ai.onnx.ml.ZipMap "
        "RegexFullMatch StringConcat StringNormalizer StringSplit ImageDecoder NonMaxSuppression NonZero Unique "
        "TfIdfVectorizer QLinearConv QLinearMatMul ai.onnx.preview.FlexAttention ai.onnx.preview.training.Adagrad "
        "ai.onnx.preview.training.Adam ai.onnx.preview.training.Momentum ai.onnx.preview.training.Gradient"
    ),
    "normalization": (
        "BatchNormalization GroupNormalization InstanceNormalization LayerNormalization LpNormalization "
        "MeanVarianceNormalization RMSNormalization SimplifiedLayerNormalization"
    ),
    "pooling": "AveragePool LpPool MaxPool com.microsoft.NhwcMaxPool LRN GlobalAveragePool GlobalLpPool GlobalMaxPool",
    "quantization": (
        "QuantizeLinear DequantizeLinear com.microsoft.QuantizeLinear com.microsoft.DequantizeLinear "
        "DynamicQuantizeLinear"
    ),
    "quantized_recurrent": "com.microsoft.DynamicQuantizeLSTM",
    "random": "Bernoulli Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike",
    "rearrangement": "com.microsoft.UnfoldTensor CenterCropPad ReverseSequence",
    "recurrent": "LSTM GRU RNN",
    "reduction": (
        "ArgMax ArgMin ReduceLogSumExp ReduceMean ReduceL1 ReduceL2 ReduceLogSum ReduceMax ReduceMin ReduceProd "
        "ReduceSum ReduceSumSquare"
    ),
    "resize": "Resize Upsample",
    "rois": "MaxRoiPool RoiAlign com.microsoft.CropAndResize",
    "rotary": "RotaryEmbedding com.microsoft.MRotaryEmbedding com.microsoft.RotaryEmbedding",
    "sampling": "AffineGrid DeformConv GridSample com.microsoft.GridSample",
    "scan": "CumProd CumSum",
    "scatter": "MaxUnpool Scatter ScatterElements ScatterND TensorScatter",
    "shape": "ConstantOfShape EyeLike Range Shape Size",
    "selection": (
        "igniter.bound.Compress igniter.bound.NonMaxSuppression igniter.bound.NonZero igniter.count.NonMaxSuppression"
    ),
    "signal": "DFT STFT BlackmanWindow HammingWindow HannWindow MelWeightMatrix",
    "softmax": "Hardmax LogSoftmax Softmax",
    "sorting": "TopK",
    "transformer": (
        "com.microsoft.EmbedLayerNormalization com.microsoft.SkipLayerNormalization "
        "com.microsoft.SkipSimplifiedLayerNormalization"
    ),
    "trees": "ai.onnx.ml.TreeEnsemble ai.onnx.ml.TreeEnsembleRegressor ai.onnx.ml.TreeEnsembleClassifier",
    "transposed": "Col2Im ConvTranspose",
    "unique": "igniter.bound.Unique igniter.count.Unique",
    "windows": "Concat Pad com.microsoft.Pad Slice Split",
}
"""The qualified names of the ops by module, separated by blanks."""

FAMILY_OF: dict[str, str] = {name: family for family, names in FAMILIES.items() for name in names.split()}
"""The module of an op."""
