// `import RoomKit` alone gives pictures, formats, cameras and the synthetic sources.
@_exported public import MediaCore
@_exported public import SyntheticSources
@_exported public import V4L2Capture
