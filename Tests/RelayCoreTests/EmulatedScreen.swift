import MediaCore

/// A screen that shows one page after the other, as a publisher's encoder sees it: a new page takes all of the rate
/// until it is sharp, and then there is a small repeat a second.
struct EmulatedScreen {
    /// How long each page is shown, in milliseconds.
    var pageTime: Int
    /// How long it takes until a page is sharp, in milliseconds.
    var sharpening = 1500
    /// What a keyframe or a new page takes, in seconds of the rate: a screen full of text at 1280x720.
    private static let pageSeconds = 0.4

    private var pages: [Int: Int] = [:]
    private var sharpAt: [Int: Int] = [:]
    private var lastFrame: [Int: Int] = [:]

    init(pageTime: Int) { self.pageTime = pageTime }

    /// Makes an encoding ready for its next frame, if there is one now.
    ///
    /// - Returns: The frame's bytes, a quarter of those of a keyframe.
    mutating func prepare(_ encoding: Camera, rate: Double, at milliseconds: Int) -> Int? {
        let layer = encoding.simulcastLayer
        let page = milliseconds / pageTime
        let isNew = pages[layer] != page
        if isNew || encoding.wantsKeyframe { sharpAt[layer] = milliseconds + sharpening }
        let isSharp = milliseconds >= sharpAt[layer, default: 0]
        let pause = isSharp ? 1000 : 66
        guard isNew || encoding.wantsKeyframe || milliseconds - lastFrame[layer, default: -1000] >= pause else {
            return nil
        }
        pages[layer] = page
        lastFrame[layer] = milliseconds
        encoding.isStill = !isNew
        let whole = max(200, Int(rate * Self.pageSeconds / 8))
        if encoding.wantsKeyframe { return whole / 4 }
        if isNew { return whole }
        return isSharp ? 250 : max(200, Int(rate * 66 / 8000) - 48)
    }
}
