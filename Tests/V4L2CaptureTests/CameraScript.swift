import CV4L2
import Glibc
import MediaCore
import TestTools
import Threading

@testable import V4L2Capture

/// What a scripted camera is and does.
struct CameraScript: Sendable {
    enum Sizes: Sendable {
        case discrete([(Int, Int)])
        case stepwise(smallest: (Int, Int), largest: (Int, Int), step: (Int, Int))
        /// The same size at every index, without end.
        case endless(Int, Int)
    }

    enum Rates: Sendable {
        case discrete([Int])
        case continuous(slowest: Int, fastest: Int)
        /// `step` is the step of the interval, as a rate.
        case stepwise(slowest: Int, fastest: Int, step: Int)
        case endless(Int)
    }

    struct Format: Sendable {
        var pixelFormat: PixelFormat
        var isCompressed = false
        var sizes = Sizes.discrete([(64, 48)])
        var rates = Rates.discrete([30])
    }

    struct Frame: Sendable {
        var sequence: UInt32
        var flags = UInt32(V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC)
        var nanoseconds: Int64 = 1_000_000_000
        /// `nil` for a full picture.
        var bytesUsed: Int?
        /// `nil` for the oldest buffer that the driver holds.
        var index: Int?
        var fill: UInt8 = 100
    }

    /// What comes at the input of a receiver, as of HDMI.
    struct Signal: Sendable {
        /// What the driver answers when it is asked for the signal.
        var status: Int32 = 0
        var width: UInt32 = 64
        /// How often the driver has told of a change, or seemed to, and was not asked yet.
        var changes = 0
    }

    struct Control: Sendable {
        var id: UInt32
        var type = V4L2_CTRL_TYPE_INTEGER.rawValue
        var label: String
        var range: ClosedRange<Int64> = 0...255
        var flags: UInt32 = 0
        var menu: [Int: String] = [:]
        /// The control that overrules this one unless it has been set to a value.
        var overruler: (id: UInt32, unless: Int32)?
        /// Whether it takes a value all the same, and has the automatic one again when it is not overruled any more.
        var takesOverruledValues = false
    }

    enum Event: Sendable {
        /// These frames become ready at once.
        case frames([Frame])
        /// The time of a wait runs out.
        case silence
        /// A wait ends after so many seconds with nothing to read.
        case pause(Double)
        /// A wait ends like this, and taking a buffer fails with `errno`.
        case trouble(NodeEvents, status: Int32)
    }

    var card = "Scripted"
    var driver = "scripted"
    var busInfo = "test-1"
    var capabilities = UInt32(V4L2_CAP_DEVICE_CAPS) | UInt32(V4L2_CAP_META_CAPTURE)
    var deviceCapabilities = UInt32(V4L2_CAP_VIDEO_CAPTURE) | UInt32(V4L2_CAP_STREAMING)
    var formats = [Format(pixelFormat: .yuyv)]
    /// Calls that always fail.
    var failures: [UInt: Int32] = [:]
    /// Calls that fail once, the first time from a number of calls on.
    var passingFailures: [UInt: (after: Int, status: Int32)] = [:]
    /// Calls of which every so many fail.
    var periodicFailures: [UInt: (every: Int, status: Int32)] = [:]
    /// Pixel formats in which streaming does not start.
    var failuresOfFormat: [PixelFormat: Int32] = [:]
    /// In the order of their numbers.
    var controls: [Control] = []
    /// The controls that were set, in order.
    var settings = Monitor<[(id: UInt32, value: Int32)]>([])
    /// What the driver makes of a format that is set.
    var substitute: (@Sendable (inout v4l2_pix_format) -> Void)?
    var memoryPlanes: UInt8 = 1
    var statedRate: (frames: UInt32, seconds: UInt32)?
    var bufferCount: UInt32?
    var events: [Event] = []
    /// The width of pictures that never come, though streaming starts.
    var silentWidth: Int?
    /// Whether waits end at once after the last event, with nothing to read.
    var isAlwaysReadable = false
    /// What passes before each event; nothing where it is zero.
    var intervalMilliseconds: Int32 = 0
    /// Whether the camera has been unplugged, to be changed by the test.
    var isUnplugged = Monitor(false)
    /// Whether the camera gives nothing at present, to be changed by the test.
    var isSilent = Monitor(false)
    /// The signal at the input, to be changed by the test; `nil` for a camera.
    var signal: Monitor<Signal>?
    /// Whether the camera gives frames already; asked at each wait, on the thread that waits.
    var isReady: @Sendable () -> Bool = { true }
    /// How long after its start a stream gives its first frame, by the real clock.
    var firstFrameDelay = Duration.zero
    /// Whether its format can only be set while no other camera is open, as with two nodes of one device.
    var isExclusive = false
    /// Called on the thread that opens the camera, before it is open.
    var whileOpening: @Sendable () -> Void = {}
    /// Called on the thread that stops streaming.
    var whileStopping: @Sendable () -> Void = {}
    /// Fills every answer with bytes made from this seed instead.
    var noise: UInt64?
}

extension CameraScript {
    /// Frames one by one, numbered from 0, a 30th of a second apart.
    static func steady(_ count: Int) -> [Event] {
        (0..<count).map { number in
            .frames([Frame(sequence: UInt32(number), nanoseconds: Int64(number + 1) * 33_333_333)])
        }
    }
}
