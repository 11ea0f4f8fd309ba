import Foundation
import RoomKit
import Tiles
import VideoProcessing

/// A track in the window: its newest picture and its caption; confine to the main thread.
final class Tile {
    /// Where the pictures come from.
    let view: TrackView
    /// The words over the picture.
    private(set) var caption: TileCaption
    /// The newest picture; `nil` before the first.
    private(set) var frame: VideoFrame?
    private var texture: PictureTexture?
    /// Whether `texture` has the newest picture.
    private var isUploaded = false
    private let scaler = FrameScaler()

    /// Creates a tile without a picture.
    init(_ view: TrackView) {
        self.view = view
        // The font has no accents.
        let plain = { (name: String) in name.folding(options: .diacriticInsensitive, locale: nil) }
        caption = TileCaption(participant: plain(view.track.publisherIdentity), track: plain(view.track.name))
    }

    /// The track's id.
    var sid: String { view.track.sid }

    /// The size of the newest picture, or as published.
    var dimensions: Dimensions { frame?.uprightDimensions ?? view.track.dimensions }

    /// Whether somebody may see the tile.
    ///
    /// A hidden one has no picture: what comes until the server has stopped sending is old when the tile is shown again.
    var isHidden = false {
        didSet {
            _ = view.take()
            if isHidden { (frame, texture) = (nil, nil) }
        }
    }

    /// Takes the newest picture; `true` if there is a new one.
    func takePicture() -> Bool {
        guard let newest = view.take(), !isHidden else { return false }
        (frame, isUploaded) = (newest, false)
        return true
    }

    /// Draws the newest picture; `false` if there is none, or SDL has no room for it.
    func draw(at area: PixelArea, in window: ViewWindow) -> Bool {
        guard let frame else { return false }
        if !isUploaded {
            let picture = fitted(scaler.upright(frame), in: window)
            if texture?.dimensions != picture.dimensions { texture = PictureTexture(picture.dimensions, in: window) }
            texture?.upload(picture.buffer)
            isUploaded = true
        }
        texture?.draw(at: area)
        return texture != nil
    }

    private func fitted(_ frame: VideoFrame, in window: ViewWindow) -> VideoFrame {
        guard let side = window.largestSide, max(frame.dimensions.width, frame.dimensions.height) > side else {
            return frame
        }
        return scaler.fit(frame, to: frame.dimensions.fitted(into: Dimensions(width: side, height: side)))
    }

    /// Brings the caption up to date; `true` if it says something new.
    func refreshCaption(isHeldBack: Bool) -> Bool {
        let statistics = view.track.statistics
        var caption = caption
        caption.figures = figures(statistics)
        caption.warning = warning(statistics, isHeldBack: isHeldBack)
        defer { self.caption = caption }
        return caption != self.caption
    }

    private func figures(_ statistics: RemoteVideoTrackStatistics) -> [String] {
        guard let frame else { return ["waiting for a picture"] }
        var words = ["\(frame.uprightDimensions)", "\(statistics.framesPerSecond) fps"]
        if let age = statistics.recentFrameAge?.p50.milliseconds {
            let error = String(format: "±%.0f", statistics.ageErrorBound.milliseconds)
            words.append(String(format: "%.0f", age) + (statistics.clock == .estimated ? error : "") + " ms")
        }
        return words
    }

    private func warning(_ statistics: RemoteVideoTrackStatistics, isHeldBack: Bool) -> String? {
        if !view.track.isEnabled { return "paused" }
        if isHeldBack { return "not sent: slow network" }
        guard view.track.isFrozen, let time = statistics.timeSinceLastFrame else { return nil }
        return String(format: "no picture for %.0f s", time.seconds.rounded(.down))
    }
}
