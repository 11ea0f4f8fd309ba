import ArgumentParser
import ClientCommandLine
import MediaCore
import RoomKit

/// What is needed of each track that is received.
struct PreferenceOptions: ParsableArguments {
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Size at which the pictures are needed, such as 640x360 or 360p; the smallest encoding that is as large "
                + "is received.",
            valueName: "WxH"
        ),
        transform: { try Dimensions.read($0) }
    )
    var size: Dimensions?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Highest frame rate that is needed, such as 10; the server leaves out the other frames.",
            valueName: "rate"
        ),
        transform: { try FrameRate.read($0) }
    )
    var fps: FrameRate?

    /// The preferences; `nil` if none is given.
    var preferences: VideoSubscriptionPreferences? {
        size == nil && fps == nil ? nil : VideoSubscriptionPreferences(dimensions: size, frameRate: fps)
    }
}
