// `import RoomKit` alone also provides frames, formats, sources and cameras.
@_exported public import enum Adaptation.DegradationPreference
@_exported public import struct Adaptation.QualityLimitation
@_exported public import Capture
@_exported public import MediaCore
@_exported public import ScreenCapture
@_exported public import SyntheticSources
@_exported public import class Threading.VideoBufferPool
@_exported public import V4L2Capture
