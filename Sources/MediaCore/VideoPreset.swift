/// The usual picture sizes by name, for sources and for `room-client --size`.
public enum VideoPreset: String, CaseIterable, Sendable {
    /// 352x288.
    case cif
    /// 640x480.
    case vga
    /// 1280x720.
    case hd720
    /// 1920x1080.
    case hd1080
    /// A preview: 320x240.
    case low
    /// What every camera has: 640x480.
    case medium
    /// The best that most connections carry: 1280x720.
    case high

    /// The size of a picture.
    public var dimensions: Dimensions {
        switch self {
        case .cif: Dimensions(width: 352, height: 288)
        case .vga, .medium: Dimensions(width: 640, height: 480)
        case .hd720, .high: Dimensions(width: 1280, height: 720)
        case .hd1080: Dimensions(width: 1920, height: 1080)
        case .low: Dimensions(width: 320, height: 240)
        }
    }
}

extension Dimensions {
    /// 352x288.
    public static var cif: Dimensions { VideoPreset.cif.dimensions }
    /// 640x480.
    public static var vga: Dimensions { VideoPreset.vga.dimensions }
    /// 1280x720.
    public static var hd720: Dimensions { VideoPreset.hd720.dimensions }
    /// 1920x1080.
    public static var hd1080: Dimensions { VideoPreset.hd1080.dimensions }
}

extension VideoFormatRequest {
    /// Creates a request for the size of `preset`, and for `frameRate` unless it is `nil`.
    public init(preset: VideoPreset, frameRate: FrameRate? = nil) {
        self.init(dimensions: preset.dimensions, frameRate: frameRate)
    }
}
