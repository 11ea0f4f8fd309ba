import ArgumentParser
import ClientCommandLine
import MediaFiles
import RoomKit

/// The options of `connect` for the source of the pictures.
struct SourceOptions: ParsableArguments {
    /// The kinds of source.
    enum Kind: AdvisedArgument {
        case camera
        case pattern
        case noise
        case screen
        case file(String)
        /// The pictures of a running program, from a pipe.
        case live(String)
        /// Frames that are VP8 already.
        case vp8(String)

        init?(argument: String) {
            switch argument {
            case "camera": self = .camera
            case "pattern": self = .pattern
            case "noise": self = .noise
            case "screen": self = .screen
            default:
                if argument.hasPrefix("file:"), argument.utf8.count > 5 {
                    self = .file(String(argument.dropFirst(5)))
                } else if argument.hasPrefix("live:"), argument.utf8.count > 5 {
                    self = .live(String(argument.dropFirst(5)))
                } else if argument.hasPrefix("vp8:"), argument.utf8.count > 4 {
                    self = .vp8(String(argument.dropFirst(4)))
                } else {
                    return nil
                }
            }
        }

        static func advice(for text: String) -> String {
            let isFile = text.contains("/") || text.contains(".")
            let name = text.lowercased()
            if name.hasSuffix(".ivf") || name.hasSuffix(".webm") { return "say vp8:\(text) for a clip" }
            if name.hasSuffix(".y4m") { return "say file:\(text) for a clip" }
            if isFile {
                return "clips are Y4M (file:CLIP.y4m), or VP8 in IVF or WebM (vp8:CLIP.ivf); "
                    + "another one goes through a pipe: ffmpeg -i \(text) -pix_fmt yuv420p -f yuv4mpegpipe - | "
                    + "room-client connect --room … --source file:-"
            }
            return "give camera, screen, pattern, noise, file:CLIP.y4m, vp8:CLIP.ivf, file:-, live:- or vp8:-"
        }

        /// Where a clip comes from; `nil` if the source is no clip.
        var clip: String? {
            switch self {
            case .file(let path), .vp8(let path): path
            case .camera, .pattern, .noise, .screen, .live: nil
            }
        }

        /// Whether the frames come from standard input.
        var isStandardInput: Bool {
            if case .live(let path) = self { path == "-" } else { clip == "-" }
        }

        /// Whether the frames are compressed already, so that nothing about them can be changed.
        var isEncoded: Bool { if case .vp8 = self { true } else { false } }
    }

    @Option(
        help: ArgumentHelp(
            "camera (the default), screen, pattern, noise, file:CLIP.y4m, or file:- for a clip from standard "
                + "input, which plays at its own speed; live:- for Y4M pictures of a running program, each of which is "
                + "shown as it comes; vp8:CLIP.ivf, vp8:CLIP.webm or vp8:- for VP8 frames, which are sent as they are.",
            valueName: "source"
        ),
        transform: { try Kind.read($0) }
    )
    var source = Kind.camera

    @Option(
        help: "The camera: path, number (2 is /dev/video2), name or bus; default the first one.",
        transform: { try GivenText.read($0).text }
    )
    var device: String?

    @Option(
        help: ArgumentHelp(
            "Camera pixel format, such as YUYV or MJPG, in capital or small letters; default the best.",
            valueName: "fourcc"
        ),
        transform: { try PixelFormat.read($0) }
    )
    var pixelFormat: PixelFormat?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "The picture's size: frames of a camera or clip are center-cropped and scaled down to it, never up, and "
                + "those of a screen are scaled to fit; default 640x480, the camera's nearest, or the screen's or clip's own; 160x120 for noise.",
            discussion: "Names: 360p, 480p (640x480), 720p, 1080p; cif, vga, hd720, hd1080; low (320x240), medium "
                + "(640x480), high (1280x720). Odd sides are made even.",
            valueName: "WxH"
        ),
        transform: { try Dimensions.read($0) }
    )
    var size: Dimensions?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Frames per second, such as 12.5 or 30000/1001; default 30, the camera's nearest, or the clip's own; 15 for "
                + "a screen, which sends one a second while nothing changes.",
            discussion: "0.01 to 1000 for cameras, 0.1 to 240 for other sources, and at most the clip's own rate.",
            valueName: "rate"
        ),
        transform: { try FrameRate.read($0) }
    )
    var fps: FrameRate?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Center-crop the picture, after --size and before --rotate.", valueName: "WxH"),
        transform: { try Dimensions.read($0) }
    )
    var crop: Dimensions?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Turn the picture clockwise: 0, 90, 180 or 270.", valueName: "degrees")
    )
    var rotate: Int = 0

    @Flag(help: "Mirror the picture, left to right.")
    var mirror = false

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "How long to wait for a camera that worked and then gives no picture; default for ever. 0 ends at once.",
            valueName: "seconds"
        ),
        transform: { try Patience.read($0) }
    )
    var cameraWait: Patience?

    @Option(
        name: .customLong("control"),
        help: ArgumentHelp(
            "Set controls of the camera, such as auto_exposure=1; `devices --controls` lists them.",
            discussion: "A value is a number, also a hexadecimal one, the name of a menu's entry, or default. Several "
                + "controls are separated by commas, or the option is repeated, in any order.",
            valueName: "name=value"
        ),
        transform: { try ControlArguments.read($0) }
    )
    var controls: [ControlArguments] = []

    @Option(
        help: ArgumentHelp(
            "Where --rotate and --mirror take effect: applied (here, before encoding) or tagged (at each subscriber).",
            valueName: "way"
        )
    )
    var orientation = VideoPublishOptions.Orientation.applied

    @Option(
        help: ArgumentHelp(
            "Turn the pictures as the camera is held, by a file that holds 0, 90, 180, 270, normal, left-up, right-up "
                + "or bottom-up, or by an accelerometer's folder, such as /sys/bus/iio/devices/iio:device0.",
            valueName: "path"
        )
    )
    var orientationSensor: String?

    @OptionGroup var screen: ScreenOptions

    @Flag(help: "Play the clip repeatedly.")
    var loop = false

    func validate() throws {
        let largest = VideoPublishOptions.maximumDimensions
        if let size, size.area > largest.area {
            throw ValidationError("--size \(size) has more pixels than can be published: \(largest) is the limit.")
        }
        guard VideoRotation(rawValue: rotate) != nil else {
            throw ValidationError("--rotate takes 0, 90, 180 or 270, not \(rotate).")
        }
        if let option = screen.given {
            guard case .screen = source else {
                throw ValidationError("\(option) is for screens; leave it out, or say --source screen.")
            }
        }
        guard case .camera = source else {
            let forCameras = [
                ("--device", device != nil), ("--pixel-format", pixelFormat != nil),
                ("--camera-wait", cameraWait != nil), ("--control", !controls.isEmpty),
                ("--orientation-sensor", orientationSensor != nil),
            ]
            if let option = forCameras.first(where: { $0.1 })?.0 {
                throw ValidationError("\(option) is for cameras; leave it out with this --source.")
            }
            try validatePainted()
            return
        }
        if loop { throw ValidationError("--loop is for clips; leave it out with a camera.") }
    }

    /// Checks the options of a source that is not a camera.
    private func validatePainted() throws {
        if loop {
            guard let path = source.clip else {
                throw ValidationError("--loop is for clips; leave it out with this --source, which has no end.")
            }
            guard path != "-" else {
                throw ValidationError("Standard input comes only once; leave --loop out, or name a file.")
            }
        }
        let forPictures = [("--size", size != nil), ("--fps", fps != nil), ("--crop", crop != nil)]
        if source.isEncoded, let option = forPictures.first(where: { $0.1 })?.0 {
            throw ValidationError("\(option) needs pictures; frames of vp8: are sent as they are, so leave it out.")
        }
        if let fps, !(0.1...240).contains(fps.framesPerSecond) {
            throw ValidationError("--fps \(fps) is out of range: without a camera it goes from 0.1 to 240.")
        }
    }

    /// The requested format.
    var request: VideoFormatRequest { VideoFormatRequest(dimensions: size, frameRate: fps, pixelFormat: pixelFormat) }

    /// What viewers see while the source is interrupted, as a sentence; `hasPictures` if it has delivered one before.
    func shownMeanwhile(hasPictures: Bool) -> String {
        switch source {
        case .camera where cameraWait?.duration != .zero: "A slate is shown meanwhile."
        case .screen where hasPictures: "The last picture is shown meanwhile."
        default: "Nothing is sent meanwhile."
        }
    }

    /// Makes the source without starting it; `whenFinished` is called if the source fails or ends by itself.
    ///
    /// Unless `isTransformed`, what `transform` does to a camera's pictures is left to the track, as it is for all other
    /// sources.
    func makeSource(
        isTransformed: Bool = true,
        whenFinished: @escaping @Sendable ((any Error)?) -> Void
    ) throws -> any VideoCapturer {
        let made = try makeSource(isTransformed)
        let events = made.captureEvents()
        Task {
            for await event in events {
                switch event {
                case .failed(let error): whenFinished(error)
                case .finished: whenFinished(nil)
                // Reported as events of the room.
                case .interrupted, .interruptionEnded, .noFramesCaptured, .warning: break
                }
            }
        }
        return made
    }

    /// The size of noise unless --size is given: small, because noise can hardly be compressed.
    ///
    /// At 640x480 and the default bit rate of other pictures, 2 to 3 frames a second could be sent.
    private static let noiseDimensions = Dimensions(width: 160, height: 120)

    /// The bit rate for noise unless --max-bitrate is given: enough for every frame, up to 10 Mbit/s; else `nil`.
    ///
    /// A pixel of noise takes 3.5 bits at the coarsest quantiser (measured with libvpx at 160x120).
    var noiseBitrate: Bitrate? {
        guard case .noise = source else { return nil }
        let pixels = Double((size ?? Self.noiseDimensions).area) * (fps ?? FrameRate(30)).framesPerSecond
        return Bitrate(bitsPerSecond: Int(min(4 * pixels, 10e6)))
    }

    /// The size that is painted: `--size` with even sides, because only such pictures are sent.
    private var paintedSize: Dimensions? {
        size.map { Dimensions(width: $0.width / 2 * 2, height: $0.height / 2 * 2) }
    }

    private func makeSource(_ isTransformed: Bool) throws -> any VideoCapturer {
        let frameRate = fps ?? FrameRate(30)
        switch source {
        case .pattern:
            let dimensions = paintedSize ?? Dimensions(width: 640, height: 480)
            return PatternSource(dimensions: dimensions, frameRate: frameRate)
        case .noise:
            return NoiseSource(dimensions: paintedSize ?? Self.noiseDimensions, frameRate: frameRate)
        case .file(let path):
            // Check the clip before joining the room. A pipe is not checked, because it can be read only once.
            if InputPath.canBeOpenedAgain(path) { try check(Y4MReader(path: path)) }
            let clip = ClipSource(path: path, loop: loop)
            clip.requestOutputFormat(VideoFormatRequest(dimensions: size, frameRate: fps))
            return clip
        case .live(let path):
            let pipe = try makePipe(path)
            pipe.requestOutputFormat(VideoFormatRequest(dimensions: size, frameRate: fps))
            return pipe
        case .vp8(let path):
            if InputPath.canBeOpenedAgain(path) { try VP8Source.check(path: path) }
            return VP8Source(path: path, loop: loop)
        case .screen:
            // It is checked here, before the room is joined.
            return try screen.makeSource(VideoFormatRequest(dimensions: size, frameRate: fps))
        case .camera: return try makeCamera(isTransformed ? cameraTransform : CameraTransform(tagging: orientation))
        }
    }

    /// Makes the source of a running program's pictures, and checks before the room is joined that there may be one.
    private func makePipe(_ path: String) throws -> PipeSource {
        if InputPath.isStored(path) {
            throw CommandFailure(
                .usage,
                "\(path == "-" ? "Standard input" : path) is a file, and no pipe of a running program; say file:\(path)."
            )
        }
        // This says what is wrong with a name that is none.
        if InputPath.canBeOpenedAgain(path) { _ = try Y4MReader(path: path) }
        return PipeSource(path: path)
    }

    /// Checks that a clip can be played with the given options.
    private func check(_ clip: Y4MReader) throws {
        if let fps, fps.framesPerSecond > clip.frameRate.framesPerSecond {
            throw CommandFailure(
                .usage,
                "--fps \(fps) is more than the clip's own \(clip.frameRate), which it keeps to; leave --fps out."
            )
        }
        guard clip.dimensions.width >= 2, clip.dimensions.height >= 2 else {
            throw CommandFailure(.badData, "The clip's pictures are \(clip.dimensions); 2x2 is the smallest size.")
        }
        try ClipSource.check(clip)
    }

    private func firstCamera() throws -> CaptureDevice {
        do throws(CameraError) {
            return try CameraSource.defaultDevice()
        } catch {
            guard error.code == .noSuchDevice else { throw error }
            throw CommandFailure(
                causedBy: error,
                "There is no camera here: \(error.explanation). Without one, try: --source pattern"
            )
        }
    }

    /// What the options say of a camera's frames.
    var cameraTransform: CameraTransform {
        var transform = CameraTransform(tagging: orientation)
        transform.crop = crop
        transform.rotation = VideoRotation(rawValue: rotate) ?? .none
        transform.isMirrored = mirror
        return transform
    }

    /// What is left to the track if a camera is transformed itself, or is not.
    func trackTransform(isCameraTransformed: Bool) -> VideoTransform {
        if case .camera = source, isCameraTransformed { return VideoTransform() }
        return transform
    }

    /// The same for the track's transform.
    var transform: VideoTransform {
        var transform = VideoTransform()
        transform.crop = crop
        transform.rotation = VideoRotation(rawValue: rotate) ?? .none
        transform.isMirrored = mirror
        return transform
    }

    private func makeCamera(_ transform: CameraTransform) throws -> CameraSource {
        let device: CaptureDevice
        if let name = self.device {
            device = try CameraSource.captureDevice(matching: name)
        } else {
            device = try firstCamera()
        }
        let sensor = try orientationSensor.map { path in try FileOrientationTracker(path: path) }
        let camera = CameraSource(
            device: device,
            request: request,
            outageLimit: cameraWait?.duration,
            transform: transform,
            orientationTracker: sensor
        )
        let settings = controls.flatMap(\.settings)
        if !settings.isEmpty { try camera.setControls(settings) }
        return camera
    }
}

extension CameraTransform {
    /// A transform that changes nothing, and tags the frames if `orientation` says so.
    fileprivate init(tagging orientation: VideoPublishOptions.Orientation) {
        self.init()
        tagsOrientation = orientation == .tagged
    }
}
